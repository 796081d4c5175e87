// SPDX-License-Identifier: BSD-2-Clause
//
// The way out of the kernel for text: one call, one whole line.
#pragma once

#include <string_view>

namespace spinkick {

/// Writes the line and a newline to every console as one piece: no other CPU, interrupt or NMI writes inside it.
/// Callable from any CPU and context. The line holds no newline of its own.
void console_write_line(std::string_view line) noexcept;

} // namespace spinkick
