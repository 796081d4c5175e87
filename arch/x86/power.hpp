// SPDX-License-Identifier: BSD-2-Clause
//
// The end of the machine.
#pragma once

#include <cstdint>

namespace spinkick::x86::power {

/// A hypervisor's own shutdown; nullptr for none. Tried after the exit device.
using Method = void (*)(std::uint8_t exit_value) noexcept;
void set_hypervisor_method(Method method) noexcept;

/// Exit device with `exit_value`, then the hypervisor's shutdown, then a reset by triple fault (which ends QEMU under
/// -no-reboot and powers microvm off), then HLT.
[[noreturn]] void off(std::uint8_t exit_value) noexcept;
/// An empty IDT and an exception: the processor resets.
[[noreturn]] void triple_fault() noexcept;

} // namespace spinkick::x86::power
