// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/workers.hpp"

#include <atomic>

#include "kernel/clock.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/lock_tracking.hpp"
#include "kernel/stress/stall_dump.hpp"
#include "kernel/test/runner.hpp"

namespace spinkick::workers {
namespace {

constexpr Nanoseconds kTick = milliseconds(20);
constexpr Nanoseconds kLastGrace = seconds(10);

/// One per CPU, on a line of its own: the worker writes, the watchdog reads.
struct alignas(64) Pulse {
    std::atomic<std::uint64_t> beats{0};
    std::atomic<const char*> note{nullptr};
    // The watchdog's side.
    std::uint64_t seen_beats = 0;
    Nanoseconds seen_at{};
    Nanoseconds seen_steal{};
    machine::UntakenKicks old_kicks{}; ///< from before this job
};

struct Slot {
    std::uint32_t worker = 0;
    std::uint32_t job = 0; ///< number of the job it belongs to
    bool running = false;  ///< set before the start, cleared by `finished` on the CPU itself
};

constinit std::array<Pulse, kMaxCpus> pulses{};
constinit std::array<Slot, kMaxCpus> slots{};
constinit Job current{};
constinit std::atomic<std::uint32_t> running{0};
constinit std::atomic<std::uint32_t> completed{0};
constinit std::atomic<std::uint32_t> rescued{0};
constinit Nanoseconds job_end{};
constinit Nanoseconds body_end{};
constinit std::atomic<bool> is_over{false};
constinit Nanoseconds interval = seconds(10);
constinit bool struck = false; ///< the watchdog has found a stall in this job
constinit CpuId first_stalled{};

constinit std::uint32_t job_number = 0;
using Hook = void (*)() noexcept;
constinit Hook look_hook = nullptr;

void enter(void* argument) {
    const auto& slot = *static_cast<Slot*>(argument);
    current.body(slot.worker, current.argument);
}

void finished(void* argument, bool by_itself) noexcept {
    auto& slot = *static_cast<Slot*>(argument);
    if (slot.job != job_number || !slot.running)
        return; // left behind by a job that has given it up
    (by_itself ? completed : rescued).fetch_add(1, std::memory_order_relaxed); // published by the release below
    std::atomic_ref(slot.running).store(false, std::memory_order_release);
    // release: run() acquires it and sees the counts.
    if (running.fetch_sub(1, std::memory_order_release) == 1 && machine::this_cpu() != machine::online_cpu(0))
        machine::wake(machine::online_cpu(0)); // where run() sleeps, until the next tick otherwise
}

constinit std::array<StalledCpu, kMaxCpus> facts{}; ///< of the last stall
constinit StallVerdict verdict{};
constinit Nanoseconds last_look{};
constinit Nanoseconds last_steal{};   ///< of the CPU that looks
constinit std::uint32_t forgiven = 0; ///< times that the watchdog had not run

bool is_running(std::uint32_t cpu) noexcept {
    return std::atomic_ref(slots[cpu].running).load(std::memory_order_acquire);
}

/// Why the watchdog itself was not run. Where no hypervisor tells, a pause and a host that is busy look alike.
const char* reason_of_gap(Nanoseconds gap, Nanoseconds stolen, bool guest_stopped) noexcept {
    if (guest_stopped)
        return "paused guest (the hypervisor says so)";
    if (stolen.value > gap.value / 2)
        return "slow host (steal time says so)";
    if (machine::tells_steal_time(machine::this_cpu()))
        return "paused guest (all clocks jumped)";
    return "paused guest or slow host (all clocks jumped, and nobody tells steal time)";
}

/// A watchdog that was not run itself knows nothing about the others: a guest that was paused, or a host that had no
/// time for it, is no stall. Everybody's time starts anew; not for ever, since a timer that gets lost looks alike.
void forgive_a_gap(Nanoseconds now) noexcept {
    constexpr std::uint32_t kMost = 10;
    const auto steal = machine::steal_time(machine::this_cpu());
    const auto gap = now - last_look;
    const auto stolen = steal - last_steal;
    const bool guest_stopped = machine::take_guest_stopped();
    last_look = now;
    last_steal = steal;
    if (gap < milliseconds(500) || gap.value < interval.value / 2 || forgiven == kMost)
        return;
    ++forgiven;
    log("# WARN watchdog: did not run for %llu ms: %s", static_cast<unsigned long long>(gap.value / 1'000'000),
        reason_of_gap(gap, stolen, guest_stopped));
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        pulses[index(cpu)].seen_at = now;
        pulses[index(cpu)].seen_steal = machine::steal_time(cpu);
    }
    job_end = job_end + gap;
    body_end = body_end + gap;
}

/// Kicks stay untaken where a vCPU ran when they came and has not waited since. A wait takes the old ones with the new.
constexpr std::uint32_t kicks_of_this_job(std::uint32_t now, std::uint32_t before) noexcept {
    return now >= before ? now - before : now;
}

/// Who waits for whom. A cycle counts if everybody in it stands still: else it is one of two looks at different times.
void add_lock_facts(std::span<StalledCpu> cpus) noexcept {
    const auto bound = machine::cpus_found();
    const auto fact_of = [cpus](CpuId cpu) {
        for (auto& fact : cpus)
            if (fact.cpu == cpu)
                return &fact;
        return static_cast<StalledCpu*>(nullptr);
    };
    for (auto& fact : cpus) {
        const auto claim = stress::lock_tracking.of(fact.cpu).waits_for();
        fact.waits = claim.has_value();
        if (!claim)
            continue;
        const auto holder = stress::lock_tracking.holder_of(claim->lock, bound);
        fact.is_entitled = holder.has_value() && *holder != fact.cpu;
        if (auto* held_by = holder ? fact_of(*holder) : nullptr; held_by != nullptr && held_by != &fact)
            held_by->holds_up = true;
        std::array<CpuId, 16> cycle{};
        const auto length = stress::lock_tracking.cycle_from(fact.cpu, bound, cycle);
        bool still = length != 0;
        for (std::size_t i = 0; i < length; ++i)
            if (const auto* other = fact_of(cycle[i]); other == nullptr || other->gets_on)
                still = false;
        if (still)
            fact.in_cycle = true;
    }
}

/// What is known about the workers that have not ended, before anybody is asked: a wait that an NMI ends takes its
/// kicks.
std::span<StalledCpu> collect_facts(Nanoseconds now) noexcept {
    std::size_t count = 0;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        if (!is_running(raw(cpu)))
            continue;
        const auto& pulse = pulses[index(cpu)];
        auto& fact = facts[count++];
        fact = {};
        fact.cpu = cpu;
        fact.silent_for = now - pulse.seen_at;
        // Not by a tick or two: of workers that stop together, some have got on a little later than others.
        fact.gets_on = fact.silent_for.value < interval.value / 2;
        fact.stolen = machine::steal_time(cpu) - pulse.seen_steal;
        const auto kicks = machine::untaken_kicks(cpu);
        fact.kicks_by_ipi = kicks_of_this_job(kicks.by_ipi, pulse.old_kicks.by_ipi);
        fact.kicks_by_hypervisor = kicks_of_this_job(kicks.by_hypervisor, pulse.old_kicks.by_hypervisor);
    }
    add_lock_facts({facts.data(), count});
    return {facts.data(), count};
}

/// From the boot CPU's timer interrupt: finds workers that do not get on, dumps once, then throws them out.
void watch() noexcept {
    const auto now = clock::now();
    if (look_hook != nullptr)
        look_hook();
    forgive_a_gap(now);
    if (now >= body_end)
        is_over.store(true, std::memory_order_relaxed); // a flag on its own
    bool stalled = now >= job_end;
    const char* why = stalled ? "stall: deadline of the job passed" : "stall: no progress within the watchdog interval";
    CpuId worst = machine::this_cpu();
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        if (!is_running(raw(cpu)))
            continue;
        auto& pulse = pulses[index(cpu)];
        const auto beats = pulse.beats.load(std::memory_order_relaxed); // a count that only has to change
        if (beats != pulse.seen_beats) {
            pulse.seen_beats = beats;
            pulse.seen_at = now;
            pulse.seen_steal = machine::steal_time(cpu);
        } else if (!stalled && now - pulse.seen_at >= interval) {
            stalled = true;
            worst = cpu;
        }
    }
    if (!stalled)
        return;
    if (!struck) {
        struck = true;
        first_stalled = worst;
        const auto stalled_workers = collect_facts(now);
        verdict = current.stall_expected ? ask_stalled(stalled_workers) : dump_stall(why, worst, stalled_workers);
        if (!current.stall_expected && current.describe != nullptr)
            current.describe(current.argument);
    }
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        if (is_running(raw(cpu)))
            machine::rescue(cpu);
    }
}

bool nobody_runs(void*) { return running.load(std::memory_order_acquire) == 0; } // sees what finished() wrote

} // namespace

std::uint32_t available(std::uint32_t first) noexcept { return machine::cpu_count() - first; }

CpuId cpu_of(std::uint32_t worker, std::uint32_t first) noexcept { return machine::online_cpu(first + worker); }

Outcome run(const Job& job) noexcept {
    current = job;
    ++job_number;
    running.store(job.count, std::memory_order_relaxed); // start_work() publishes all of this
    completed.store(0, std::memory_order_relaxed);
    rescued.store(0, std::memory_order_relaxed);
    struck = false;
    verdict = {};
    forgiven = 0;
    const auto begin = clock::now();
    last_look = begin;
    last_steal = machine::steal_time(machine::this_cpu());
    (void)machine::take_guest_stopped(); // before this job
    job_end = begin + job.deadline;
    body_end = begin + job.duration;
    is_over.store(false, std::memory_order_relaxed);
    machine::set_tick(watch, kTick);

    Outcome outcome;
    for (std::uint32_t worker = job.count; worker-- > 0;) {
        const auto cpu = cpu_of(worker, job.first);
        auto& slot = slots[index(cpu)];
        auto& pulse = pulses[index(cpu)];
        pulse.note.store(nullptr, std::memory_order_relaxed);
        // What it did in an earlier job is no progress in this one.
        pulse.seen_beats = pulse.beats.load(std::memory_order_relaxed);
        pulse.seen_at = begin;
        pulse.seen_steal = machine::steal_time(cpu);
        pulse.old_kicks = machine::untaken_kicks(cpu);
        if (cpu != machine::this_cpu() && !machine::is_idle(cpu)) {
            log("# worker %u: CPU %u is not idle", worker, raw(cpu));
            running.fetch_sub(1, std::memory_order_relaxed); // no worker has been waited for yet
            ++outcome.started;
            continue;
        }
        slot = {worker, job_number, true};
        const machine::Work work{enter, &slot, finished};
        ++outcome.started;
        if (cpu == machine::this_cpu()) {
            machine::run_here(work); // worker 0, last: all others have been started
        } else if (!machine::start_work(cpu, work)) {
            log("# worker %u: CPU %u is not idle", worker, raw(cpu));
            slot.running = false;
            running.fetch_sub(1, std::memory_order_relaxed);
        }
    }
    // The timer's interrupts end the sleep. A worker that neither ends nor can be thrown out (its CPU never took the
    // work) is left behind.
    const auto give_up = job_end + kLastGrace;
    while (!nobody_runs(nullptr) && clock::now() < give_up)
        machine::idle_unless(nobody_runs, nullptr);
    if (!nobody_runs(nullptr)) {
        for (auto& slot : slots)
            std::atomic_ref(slot.running).store(false, std::memory_order_relaxed);
        log("# %u workers cannot be reached any more", running.load(std::memory_order_relaxed));
    }
    machine::set_tick(nullptr, kTick);
    // `finished` runs inside the work: a CPU is free for the next job a moment later.
    const clock::Deadline settle(seconds(5));
    for (std::uint32_t worker = 0; worker < job.count; ++worker)
        while (!machine::is_idle(cpu_of(worker, job.first)) && !settle.passed())
            machine::relax();

    outcome.completed = completed.load(std::memory_order_relaxed);
    outcome.rescued = rescued.load(std::memory_order_relaxed);
    outcome.stalled = struck;
    outcome.verdict = verdict;
    outcome.first_stalled = first_stalled;
    return outcome;
}

void set_look_hook(void (*hook)() noexcept) noexcept { look_hook = hook; }

void dump() noexcept {
    // No verdict: `none` is what somebody who asks expects of a machine that gets on.
    (void)dump_stall("dump, asked for", machine::this_cpu(), collect_facts(clock::now()));
}

bool over() noexcept { return is_over.load(std::memory_order_relaxed); }

void progress() noexcept {
    auto& beats = pulses[index(machine::this_cpu())].beats;
    beats.store(beats.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); // one writer; the value is all
}

void note(const char* what) noexcept { pulses[index(machine::this_cpu())].note.store(what, std::memory_order_relaxed); }

const char* note_of(CpuId cpu) noexcept {
    const auto* note = pulses[index(cpu)].note.load(std::memory_order_relaxed);
    return note == nullptr ? "" : note;
}

bool Barrier::wait(std::uint32_t count) noexcept {
    std::atomic_ref arrived(arrived_);
    std::atomic_ref generation(generation_);
    const auto mine = generation.load(std::memory_order_acquire);
    // Acquire-release: whoever leaves sees what everybody did before arriving.
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
        arrived.store(0,
                      std::memory_order_relaxed); // before the release below; the next round's arrivals come after it
        generation.fetch_add(1, std::memory_order_release);
        return true;
    }
    const clock::Deadline deadline(interval);
    constexpr std::uint32_t kPatience = 64; // looks: for those that run already
    for (std::uint32_t looks = 0; generation.load(std::memory_order_acquire) == mine; ++looks) {
        if (looks < kPatience) {
            machine::relax();
            continue;
        }
        if (deadline.passed())
            return false;
        machine::yield();
    }
    return true;
}

void Barrier::reset() noexcept { arrived_ = generation_ = 0; }

void set_watchdog(Nanoseconds value) noexcept { interval = value; }
Nanoseconds watchdog() noexcept { return interval; }

} // namespace spinkick::workers
