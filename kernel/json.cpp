// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/json.hpp"

#include "kernel/console.hpp"
#include "kernel/log.hpp"

namespace spinkick {

// A literal with its length: from a bare one, string_view would call strlen, which the kernel does not have.
using namespace std::string_view_literals;

JsonLine::JsonLine(std::span<char> storage, std::string_view type) noexcept : storage_(storage), type_(type) {
    raw("# json "sv);
    open(Level::object);
    text("type"sv, type);
}

void JsonLine::raw(char c) noexcept {
    if (needed_ < storage_.size())
        storage_[needed_] = c;
    ++needed_;
}

void JsonLine::raw(std::string_view text) noexcept {
    for (const char c : text)
        raw(c);
}

void JsonLine::string(std::string_view value) noexcept {
    constexpr std::string_view kHex = "0123456789abcdef"sv;
    raw('"');
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            raw('\\');
            raw(c);
        } else if (byte < 0x20 || byte >= 0x7f) {
            // Bytes above 0x7e come from tables and command lines and need not be UTF-8: each stands for itself.
            raw("\\u00"sv);
            raw(kHex[byte >> 4]);
            raw(kHex[byte & 15]);
        } else {
            raw(c);
        }
    }
    raw('"');
}

void JsonLine::comma() noexcept {
    if (depth_ == 0)
        return;
    if (filled_[depth_ - 1])
        raw(',');
    filled_[depth_ - 1] = true;
}

void JsonLine::name(std::string_view key) noexcept {
    if (depth_ == 0 || levels_[depth_ - 1] != Level::object)
        malformed_ = true;
    comma();
    string(key);
    raw(':');
}

void JsonLine::item() noexcept {
    if (depth_ == 0 || levels_[depth_ - 1] != Level::list)
        malformed_ = true;
    comma();
}

void JsonLine::open(Level level) noexcept {
    raw(level == Level::object ? '{' : '[');
    if (depth_ == kDeepest) {
        malformed_ = true;
        return;
    }
    levels_[depth_] = level;
    filled_[depth_] = false;
    ++depth_;
}

JsonLine& JsonLine::end() noexcept {
    if (depth_ == 0) {
        malformed_ = true;
        return *this;
    }
    --depth_;
    raw(levels_[depth_] == Level::object ? '}' : ']');
    return *this;
}

JsonLine& JsonLine::text(std::string_view key, std::string_view value) noexcept {
    name(key);
    string(value);
    return *this;
}

JsonLine& JsonLine::text(std::string_view value) noexcept {
    item();
    string(value);
    return *this;
}

JsonLine& JsonLine::flag(std::string_view key, bool value) noexcept {
    name(key);
    raw(value ? "true"sv : "false"sv);
    return *this;
}

JsonLine& JsonLine::begin_object(std::string_view key) noexcept {
    name(key);
    open(Level::object);
    return *this;
}

JsonLine& JsonLine::begin_list(std::string_view key) noexcept {
    name(key);
    open(Level::list);
    return *this;
}

JsonLine& JsonLine::begin_object() noexcept {
    item();
    open(Level::object);
    return *this;
}

JsonLine& JsonLine::begin_list() noexcept {
    item();
    open(Level::list);
    return *this;
}

JsonLine& JsonLine::put_digits(bool negative, std::uint64_t magnitude) noexcept {
    char digits[20]; // 2^64 - 1 has 20
    std::size_t n = 0;
    do {
        digits[n++] = static_cast<char>('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude != 0);
    if (negative)
        raw('-');
    while (n > 0)
        raw(digits[--n]);
    return *this;
}

std::string_view JsonLine::finish() noexcept {
    if (depth_ == 1)
        end();
    else if (depth_ != 0)
        malformed_ = true; // an inner list or object is still open
    if (malformed_ || needed_ > storage_.size())
        return {};
    return {storage_.data(), needed_};
}

bool JsonLine::emit() noexcept {
    const std::string_view line = finish();
    if (!line.empty()) {
        console_write_line(line);
        return true;
    }
    const auto type_size = static_cast<int>(type_.size() < 40 ? type_.size() : 40);
    if (malformed_)
        log("# record lost: type %.*s: its brackets or keys do not match", type_size, type_.data());
    else
        log("# record lost: type %.*s: needs %zu bytes, its buffer has %zu", type_size, type_.data(), needed_,
            storage_.size());
    return false;
}

} // namespace spinkick
