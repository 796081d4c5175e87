// SPDX-License-Identifier: BSD-2-Clause
//
// One line of text for people or for the report.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace spinkick {

/// Longest line of log(); what is longer ends in "...". Records that are longer by nature go through JsonLine.
inline constexpr std::size_t kLogLineBytes = 500;

/// Writes one line. The line is built on the caller's stack, so that interrupts and other CPUs may log meanwhile.
/// Control characters become '?': a text from outside cannot start a line of its own.
void log(const char* fmt, ...) noexcept __attribute__((format(printf, 1, 2)));
void vlog(const char* fmt, std::va_list args) noexcept __attribute__((format(printf, 1, 0)));

} // namespace spinkick
