// SPDX-License-Identifier: BSD-2-Clause
//
// Small text helpers for bytes that nobody vouches for: a serial log may hold anything.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace spinkick::report {

/// An input that cannot be used: what() is the one line that the user sees, and the program ends with 2.
class InputError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The text without terminal control sequences (ESC [ ... letter), which firmware and boot loaders mix into the stream.
[[nodiscard]] std::string without_terminal_codes(std::string_view text);

/// The text as printable ASCII: everything else becomes \xNN, so that no reader (XML, TAP, a terminal) chokes on it.
[[nodiscard]] std::string printable(std::string_view text);

/// A decimal number that fills the whole text; no sign, no blanks.
template <class Integer>
[[nodiscard]] std::optional<Integer> parse_number(std::string_view text) noexcept {
    Integer value{};
    if (text.empty() || text.front() < '0' || text.front() > '9')
        return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

[[nodiscard]] constexpr bool is_alphanumeric(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

} // namespace spinkick::report
