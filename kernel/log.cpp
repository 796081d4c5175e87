// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/log.hpp"

#include "kernel/console.hpp"
#include "kernel/text.hpp"

namespace spinkick {

void vlog(const char* fmt, std::va_list args) noexcept {
    char line[kLogLineBytes + 1];
    TextBuffer out(line);
    vformat(out, fmt, args);
    replace_control_characters({line, out.size()});
    console_write_line(out.view());
}

void log(const char* fmt, ...) noexcept {
    std::va_list args;
    va_start(args, fmt);
    vlog(fmt, args);
    va_end(args);
}

} // namespace spinkick
