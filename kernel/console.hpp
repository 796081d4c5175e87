// SPDX-License-Identifier: BSD-2-Clause
//
// The way out of the kernel for text, one call, one whole line; and the way in, a byte at a time.
#pragma once

#include <optional>
#include <string_view>

namespace spinkick {

/// Writes the line and a newline to every console as one piece: no other CPU, interrupt or NMI writes inside it.
/// Callable from any CPU and context. The line holds no newline of its own.
void console_write_line(std::string_view line) noexcept;

/// The next byte that somebody has sent to this machine's console; nothing if there is none, or if this console has no
/// way in. Never waits. One reader at a time; a look may be an exit to the hypervisor.
[[nodiscard]] std::optional<char> console_read() noexcept;

} // namespace spinkick
