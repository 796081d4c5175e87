// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/panic.hpp"

#include <cstdarg>

#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/text.hpp"

namespace spinkick {

void panic(const char* format, ...) noexcept {
    char text[300];
    TextBuffer buffer(text);
    std::va_list arguments;
    va_start(arguments, format);
    vformat(buffer, format, arguments);
    va_end(arguments);
    machine::die(text);
}

} // namespace spinkick
