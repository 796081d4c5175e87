// SPDX-License-Identifier: BSD-2-Clause
//
// Shell patterns of two signs: '*' stands for any number of characters, '?' for exactly one. A '/' is a character like
// any other, so `lock.*` selects every lock on every back end.
#pragma once

#include <cstddef>
#include <string_view>

namespace spinkick {

[[nodiscard]] constexpr bool glob_match(std::string_view pattern, std::string_view text) noexcept {
    // Going back to the last star is enough: an earlier star could only give the later one less to match. So the time
    // is at most pattern x text, whatever the pattern.
    constexpr std::size_t kNoStar = static_cast<std::size_t>(-1);
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = kNoStar;
    std::size_t star_text = 0; // what the last star has matched ends here
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_text = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != kNoStar) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

/// True if the pattern stands for one text only.
[[nodiscard]] constexpr bool is_literal(std::string_view pattern) noexcept {
    for (const char c : pattern)
        if (c == '*' || c == '?')
            return false;
    return true;
}

} // namespace spinkick
