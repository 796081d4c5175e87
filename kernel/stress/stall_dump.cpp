// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/stall_dump.hpp"

#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/symbols.hpp"
#include "kernel/test/runner.hpp"

namespace spinkick::workers {
namespace {

constexpr Nanoseconds kPatience = milliseconds(500);

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
    log("# stall: %s: CPU %u, test %.*s", why, raw(worst), static_cast<int>(test.size()), test.data());
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
        if (facts != nullptr && (facts->kicks_by_ipi != 0 || facts->kicks_by_hypervisor != 0))
            log("#          kicks sent to it and not taken: %u by IPI, %u by the hypervisor", facts->kicks_by_ipi,
                facts->kicks_by_hypervisor);
    }
    const auto verdict = judge_stall(workers);
    if (verdict.kind != StallKind::none)
        log("# stall verdict: %s, CPU %u: %s", name(verdict.kind), raw(verdict.cpu), meaning(verdict.kind));
    return verdict;
}

} // namespace spinkick::workers
