// SPDX-License-Identifier: BSD-2-Clause
//
// Reading fields of a record that may lack them or hold something else: the image may be older, newer or broken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/serial_stream.hpp"

namespace spinkick::report {

[[nodiscard]] inline bool is_type(const Json& record, std::string_view type) {
    const auto value = record.find("type");
    return value != record.end() && value->is_string() && value->get_ref<const std::string&>() == type;
}

[[nodiscard]] inline std::optional<std::uint64_t> number_in(const Json& record, const char* key) {
    const auto value = record.find(key);
    // A number made by a program is signed even where a parsed one is not.
    if (value == record.end() || !value->is_number_integer() || *value < 0)
        return std::nullopt;
    return value->get<std::uint64_t>();
}

/// A list of numbers; empty if any of them is something else.
[[nodiscard]] inline std::vector<std::uint64_t> numbers_in(const Json& record, const char* key) {
    const auto value = record.find(key);
    if (value == record.end() || !value->is_array())
        return {};
    std::vector<std::uint64_t> numbers;
    for (const Json& item : *value) {
        if (!item.is_number_integer() || item < 0)
            return {};
        numbers.push_back(item.get<std::uint64_t>());
    }
    return numbers;
}

[[nodiscard]] inline std::string text_in(const Json& record, const char* key) {
    const auto value = record.find(key);
    return value != record.end() && value->is_string() ? value->get<std::string>() : std::string{};
}

} // namespace spinkick::report
