// SPDX-License-Identifier: BSD-2-Clause
//
// The way out of a Xen guest. A dom0 says "reboot", not "power off": one that powers off makes Xen halt the machine for
// ever, one that reboots ends a QEMU that runs with -no-reboot. A domU says "power off" when it has given its verdict,
// whatever that is, and "crash" after a panic: the toolstack treats the two by on_poweroff and on_crash.
#pragma once

#include <cstdint>

namespace spinkick::paravirt {

/// For power::set_hypervisor_method(). Returns only if Xen refuses.
void xen_shutdown(std::uint8_t exit_value) noexcept;

} // namespace spinkick::paravirt
