// SPDX-License-Identifier: BSD-2-Clause
//
// Port 0xe9: QEMU's debug console, and Xen's for every HVM and PVH domain. A read gives 0xe9 back where somebody
// listens.
#pragma once

#include <cstdint>
#include <string_view>

#include "arch/x86/insn.hpp"

namespace spinkick::drivers {

inline constexpr std::uint16_t kDebugPort = 0xe9;

[[nodiscard]] inline bool debug_port_present() noexcept { return x86::inb(kDebugPort) == 0xe9; }
inline void debug_port_write(std::string_view bytes) noexcept { x86::outsb(kDebugPort, bytes.data(), bytes.size()); }

} // namespace spinkick::drivers
