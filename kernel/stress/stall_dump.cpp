// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/stall_dump.hpp"

#include <array>
#include <optional>

#include "kernel/clock.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "kernel/stress/lock_text.hpp"
#include "kernel/symbols.hpp"
#include "kernel/test/runner.hpp"
#include "kernel/text.hpp"

namespace spinkick::workers {
namespace {

constexpr Nanoseconds kPatience = milliseconds(500);

/// 0 for a time that another CPU's counter puts after now.
unsigned long long microseconds_between(Tsc earlier, Tsc later) noexcept {
    return later > earlier ? static_cast<unsigned long long>(clock::to_nanoseconds(later - earlier).value / 1000) : 0;
}

StalledCpu* facts_of(std::span<StalledCpu> workers, CpuId cpu) noexcept {
    for (auto& worker : workers)
        if (worker.cpu == cpu)
            return &worker;
    return nullptr;
}

machine::CpuState ask(CpuId cpu, StalledCpu* facts) noexcept {
    const auto state = machine::inspect(cpu, kPatience);
    if (facts != nullptr) {
        constexpr unsigned kClassShift = 4; // an interrupt is taken if its class is above that of the TPR
        facts->answered = state.answered;
        facts->halted = state.halted;
        // An interrupt does not end every hypercall that waits.
        facts->interrupt_requested =
            !state.in_hypercall && state.interrupts_on && state.requested >> kClassShift > state.tpr >> kClassShift;
    }
    return state;
}

/// The newest kick of a CPU that is still in anybody's flight recorder.
void log_last_kick(CpuId cpu, Tsc now) noexcept {
    std::optional<stress::FlightRecord> newest;
    CpuId by{};
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto other = machine::online_cpu(n);
        machine::flight_log(other).for_each_of_last(stress::FlightRing::kRecords, [&](const stress::FlightRecord& r) {
            if (r.event == sync::FlightEvent::kicks && r.argument == raw(cpu) && (!newest || r.time > newest->time)) {
                newest = r;
                by = other;
            }
        });
    }
    if (newest)
        log("#          last kick to it: by CPU %u, %llu us ago", raw(by), microseconds_between(newest->time, now));
}

/// The last events of a CPU, oldest first, as many to a line as it holds.
void log_events(CpuId cpu, std::uint64_t most, Tsc now) noexcept {
    constexpr std::size_t kLineBytes = 440;
    std::array<char, kLineBytes> storage{};
    TextBuffer line(storage);
    const auto flush = [&] {
        if (!line.empty())
            log("#          events, us ago: %s", line.c_str());
        line.clear();
    };
    machine::flight_log(cpu).for_each_of_last(most, [&](const stress::FlightRecord& r) {
        if (line.size() + 64 > kLineBytes)
            flush();
        const auto name = sync::kFlightEventNames[static_cast<std::size_t>(r.event)];
        format(line, "%s%llu %.*s", line.empty() ? "" : ", ", microseconds_between(r.time, now),
               static_cast<int>(name.size()), name.data());
        switch (r.event) {
        case sync::FlightEvent::queued:
            format(line, " behind CPU %u", r.argument);
            break;
        case sync::FlightEvent::kicks:
        case sync::FlightEvent::kicked:
            format(line, " CPU %u", r.argument);
            break;
        case sync::FlightEvent::halts:
            if (r.argument < sync::kLockEvents)
                format(line, " (%s)", sync::kLockEventNames[r.argument].data());
            break;
        case sync::FlightEvent::wants:
        case sync::FlightEvent::acquired:
        case sync::FlightEvent::releases:
            format(line, " 0x%x", r.argument);
            break;
        default:
            break;
        }
    });
    flush();
}

/// What is kept about locks, before anybody is asked: an NMI ends a sleep, and whoever slept may go on by that.
void log_locks(std::span<const StalledCpu> workers) noexcept {
    // A stall is explained by those that stand still.
    constexpr std::uint64_t kEventsOfStalled = 64, kEventsOfOthers = 8;
    const auto now = machine::time_stamp();
    log("# what each worker waits for and holds, and what it did last:");
    for (const auto& worker : workers) {
        log("#   cpu %u: %s for %llu ms", raw(worker.cpu), worker.gets_on ? "gets on; silent" : "stands still",
            static_cast<unsigned long long>(worker.silent_for.value / 1'000'000));
        stress::log_claims(worker.cpu, machine::cpus_found());
        if (worker.kicks_by_ipi != 0 || worker.kicks_by_hypervisor != 0)
            log("#          kicks sent to it and not taken: %u by IPI, %u by the hypervisor", worker.kicks_by_ipi,
                worker.kicks_by_hypervisor);
        log_last_kick(worker.cpu, now);
        log_events(worker.cpu, worker.gets_on ? kEventsOfOthers : kEventsOfStalled, now);
    }
    for (const auto& worker : workers)
        if (worker.in_cycle)
            return stress::log_cycle(worker.cpu, machine::cpus_found());
}

} // namespace

StallVerdict ask_stalled(std::span<StalledCpu> workers) noexcept {
    for (auto& worker : workers) {
        if (worker.cpu == machine::this_cpu())
            worker.answered = true; // it runs this
        else
            (void)ask(worker.cpu, &worker);
    }
    return judge_stall(workers);
}

StallVerdict dump_stall(const char* why, CpuId worst, std::span<StalledCpu> workers) noexcept {
    const auto test = test::running_test_name();
    log("# %s: CPU %u, test %.*s", why, raw(worst), static_cast<int>(test.size()), test.data());
    log_locks(workers);
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        auto* facts = facts_of(workers, cpu);
        const char* role = facts != nullptr ? "worker" : "no worker";
        if (cpu == machine::this_cpu()) {
            if (facts != nullptr)
                facts->answered = true; // it runs this
            log("#   cpu %u: %s, watches (timer interrupt) %s", raw(cpu), role, note_of(cpu));
            continue;
        }
        const auto state = ask(cpu, facts);
        if (!state.answered) {
            log("#   cpu %u: %s, does not answer an NMI within 500 ms %s", raw(cpu), role, note_of(cpu));
            continue;
        }
        const auto symbol = symbol_of(state.instruction);
        log("#   cpu %u: %s, %s, RIP 0x%lx %.*s+0x%lx, IF %d, ISR 0x%lx, IRR 0x%lx, TPR 0x%lx %s", raw(cpu), role,
            state.halted ? "halted" : "running", state.instruction, static_cast<int>(symbol.name.size()),
            symbol.name.data(), symbol.offset, state.interrupts_on ? 1 : 0, state.in_service, state.requested,
            state.tpr, note_of(cpu));
        if (state.event_port != 0)
            log("#          event channel %u: %s, %s", state.event_port, state.port_pending ? "pending" : "not pending",
                state.port_masked ? "masked" : "not masked");
    }
    const auto verdict = judge_stall(workers);
    if (verdict.kind != StallKind::none)
        log("# stall verdict: %s, CPU %u: %s", name(verdict.kind), raw(verdict.cpu), meaning(verdict.kind));
    return verdict;
}

} // namespace spinkick::workers
