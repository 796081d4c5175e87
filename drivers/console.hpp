// SPDX-License-Identifier: BSD-2-Clause
//
// Which devices kernel/console.hpp's lines go to.
#pragma once

#include <cstdint>
#include <string_view>

namespace spinkick::drivers::console {

/// A way out. All of it is called with the console lock held, or where only one CPU is left.
struct Device {
    void (*write)(std::string_view) noexcept = nullptr;
    const char* name = "none";
    void (*drain)() noexcept = nullptr;         ///< nullptr: what is written has left
    std::uint64_t (*lost)() noexcept = nullptr; ///< bytes not taken; nullptr: it takes all
    int (*read)() noexcept = nullptr; ///< the next byte that came in, -1 for none; nullptr: there is no way in
};

/// Probes COM1, then port 0xe9 if COM1 is not there. True if anything answers.
[[nodiscard]] bool init() noexcept;
/// Uses `device`, for example a hypervisor's, instead of what init() found.
void use(const Device& device) noexcept;
/// "uart 0x3f8", "port 0xe9", ... "none".
[[nodiscard]] const char* name() noexcept;
/// True if the lines go to COM1.
[[nodiscard]] bool has_uart() noexcept;
/// Waits, bounded, until everything has left the machine.
void drain() noexcept;
/// For the last words of a dying kernel: lines are written even if another CPU holds the console for ever.
void break_lock() noexcept;
/// Bytes that a full or dead transmitter did not take.
[[nodiscard]] std::uint64_t lost_bytes() noexcept;

} // namespace spinkick::drivers::console
