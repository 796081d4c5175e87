// SPDX-License-Identifier: BSD-2-Clause
//
// QEMU's isa-debug-exit at port 0xf4, the way in which a run tells the process outside how it ended
// (docs/report-format.md).
#pragma once

#include <cstdint>

#include "arch/x86/insn.hpp"

namespace spinkick::drivers {

inline constexpr std::uint16_t kDebugExitPort = 0xf4;

/// Ends QEMU with (value << 1) | 1 if the device is there: at once, or (QEMU 10.0) a while after this has returned.
inline void debug_exit(std::uint8_t value) noexcept { x86::outl(kDebugExitPort, value); }

} // namespace spinkick::drivers
