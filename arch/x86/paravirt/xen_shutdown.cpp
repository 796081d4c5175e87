// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen_shutdown.hpp"

#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/xen_domain.hpp"
#include "kernel/machine.hpp"

namespace spinkick::paravirt {

void xen_shutdown(std::uint8_t exit_value) noexcept {
    auto reason = xen_abi::SHUTDOWN_poweroff;
    if (xen_domain::is_initial())
        reason = xen_abi::SHUTDOWN_reboot;
    else if (exit_value == static_cast<std::uint8_t>(machine::Exit::panic))
        reason = xen_abi::SHUTDOWN_crash;
    const xen_abi::sched_shutdown argument{reason};
    (void)xen_hypercall(xen_abi::Hypercall::sched_op, xen_abi::SCHEDOP_shutdown,
                        reinterpret_cast<std::uint64_t>(&argument));
}

} // namespace spinkick::paravirt
