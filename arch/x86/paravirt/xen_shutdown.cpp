// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen_shutdown.hpp"

#include "arch/x86/paravirt/hypercall.hpp"

namespace spinkick::paravirt {

void xen_shutdown(std::uint8_t) noexcept {
    const xen_abi::sched_shutdown argument{xen_abi::SHUTDOWN_reboot};
    (void)xen_hypercall(xen_abi::Hypercall::sched_op, xen_abi::SCHEDOP_shutdown,
                        reinterpret_cast<std::uint64_t>(&argument));
}

} // namespace spinkick::paravirt
