// SPDX-License-Identifier: BSD-2-Clause
//
// The end of a run that cannot go on: one line with the reason, a backtrace with symbols, the running test, and the
// exit device. No verdict follows, so the runner calls it a crash.
#pragma once

namespace spinkick {

[[noreturn]] void panic(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

} // namespace spinkick
