// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/stall_dump.hpp"

#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/symbols.hpp"
#include "kernel/test/runner.hpp"

namespace spinkick::workers {

void dump_stall(const char* why, CpuId worst) noexcept {
    const auto test = test::running_test_name();
    log("# stall: %s: CPU %u, test %.*s", why, raw(worst), static_cast<int>(test.size()), test.data());
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        const char* role = runs_worker(cpu) ? "worker" : "no worker";
        if (cpu == machine::this_cpu()) {
            log("#   cpu %u: %s, watches (timer interrupt) %s", raw(cpu), role, note_of(cpu));
            continue;
        }
        const auto state = machine::inspect(cpu, milliseconds(500));
        if (!state.answered) {
            log("#   cpu %u: %s, does not answer an NMI within 500 ms %s", raw(cpu), role, note_of(cpu));
            continue;
        }
        const auto symbol = symbol_of(state.instruction);
        log("#   cpu %u: %s, %s, RIP 0x%lx %.*s+0x%lx, IF %d, ISR 0x%lx, IRR 0x%lx, TPR 0x%lx %s", raw(cpu), role,
            state.halted ? "halted" : "running", state.instruction, static_cast<int>(symbol.name.size()),
            symbol.name.data(), symbol.offset, state.interrupts_on ? 1 : 0, state.in_service, state.requested,
            state.tpr, note_of(cpu));
    }
}

} // namespace spinkick::workers
