// SPDX-License-Identifier: BSD-2-Clause
//
// The way out of a Xen guest. "Reboot", not "power off": a dom0 that powers off makes Xen halt the machine for ever,
// one that reboots ends a QEMU that runs with -no-reboot.
#pragma once

#include <cstdint>

namespace spinkick::paravirt {

/// For power::set_hypervisor_method(). Returns only if Xen refuses.
void xen_shutdown(std::uint8_t exit_value) noexcept;

} // namespace spinkick::paravirt
