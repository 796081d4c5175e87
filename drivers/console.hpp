// SPDX-License-Identifier: BSD-2-Clause
//
// Which devices kernel/console.hpp's lines go to.
#pragma once

#include <cstdint>
#include <string_view>

namespace spinkick::drivers::console {

/// A further way out, for example a hypervisor's; nullptr for none. Called with the console lock held.
using Sink = void (*)(std::string_view) noexcept;

/// Probes COM1, then port 0xe9 if COM1 is not there. True if anything answers.
[[nodiscard]] bool init() noexcept;
/// Uses `sink` instead of what init() found.
void use(Sink sink, const char* name) noexcept;
/// "uart 0x3f8", "port 0xe9", ...
[[nodiscard]] const char* name() noexcept;
/// Waits, bounded, until everything has left the machine.
void drain() noexcept;
/// For the last words of a dying kernel: lines are written even if another CPU holds the console for ever.
void break_lock() noexcept;
/// Bytes that a full or dead transmitter did not take.
[[nodiscard]] std::uint64_t lost_bytes() noexcept;

} // namespace spinkick::drivers::console
