// SPDX-License-Identifier: BSD-2-Clause
#include "tools/text.hpp"

#include <fmt/format.h>

namespace spinkick::report {

std::string without_terminal_codes(std::string_view text) {
    std::string clean;
    clean.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\x1b' || i + 1 >= text.size() || text[i + 1] != '[') {
            clean += text[i];
            continue;
        }
        // ECMA-48 control sequence: parameter and intermediate bytes 0x20..0x3f, then one final byte 0x40..0x7e. One
        // that does not end that way is no control sequence and stays.
        std::size_t end = i + 2;
        while (end < text.size() && text[end] >= 0x20 && text[end] <= 0x3f)
            ++end;
        if (end < text.size() && text[end] >= 0x40 && text[end] <= 0x7e)
            i = end;
        else
            clean += text[i];
    }
    return clean;
}

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (c >= 0x20 && c <= 0x7e)
            out += c;
        else
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return out;
}

} // namespace spinkick::report
