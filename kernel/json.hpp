// SPDX-License-Identifier: BSD-2-Clause
//
// One measurement record as one line: `# json {"type":"bench",...}`. The record is built in a caller's buffer, usually
// a static one, since a histogram or a context is longer than a stack likes. A record that does not fit is never
// written in part: a comment says which one was lost and how many bytes it needed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spinkick {

class JsonLine {
  public:
    /// Starts a record; `type` is its first member. One character costs one byte, escaped ones up to six.
    JsonLine(std::span<char> storage, std::string_view type) noexcept;
    JsonLine(const JsonLine&) = delete;
    JsonLine& operator=(const JsonLine&) = delete;

    // Members of an object.
    JsonLine& text(std::string_view key, std::string_view value) noexcept;
    template <std::integral T>
    JsonLine& number(std::string_view key, T value) noexcept {
        name(key);
        return put(value);
    }
    JsonLine& flag(std::string_view key, bool value) noexcept;
    JsonLine& begin_object(std::string_view key) noexcept;
    JsonLine& begin_list(std::string_view key) noexcept;
    template <std::integral T>
    JsonLine& list(std::string_view key, std::span<const T> values) noexcept {
        begin_list(key);
        for (const T value : values)
            number(value);
        return end();
    }

    // Items of a list.
    JsonLine& text(std::string_view value) noexcept;
    template <std::integral T>
    JsonLine& number(T value) noexcept {
        item();
        return put(value);
    }
    JsonLine& begin_object() noexcept;
    JsonLine& begin_list() noexcept;
    /// A list inside a list: `[lowest_ns, count]`, `[cpu, apic_id, xen_vcpu]`.
    template <std::integral... T>
    JsonLine& tuple(T... values) noexcept {
        begin_list();
        (number(values), ...);
        return end();
    }

    /// Closes the innermost object or list.
    JsonLine& end() noexcept;

    /// Closes the record and writes it. False if it was lost; the line says why.
    bool emit() noexcept;

    /// The finished line, or empty if it did not fit or its brackets do not match. For emit() and tests.
    [[nodiscard]] std::string_view finish() noexcept;
    /// Bytes the line needs, whether it fits or not.
    [[nodiscard]] std::size_t needed() const noexcept { return needed_; }

  private:
    enum class Level : std::uint8_t { object, list };
    static constexpr std::size_t kDeepest = 8;

    template <std::integral T>
    JsonLine& put(T value) noexcept {
        static_assert(!std::same_as<T, bool>, "flag() writes true and false");
        if constexpr (std::is_signed_v<T>)
            if (value < 0)
                return put_digits(true, 0 - static_cast<std::uint64_t>(value));
        return put_digits(false, static_cast<std::uint64_t>(value));
    }
    JsonLine& put_digits(bool negative, std::uint64_t magnitude) noexcept;
    void name(std::string_view key) noexcept;
    void item() noexcept;
    void comma() noexcept;
    void open(Level level) noexcept;
    void string(std::string_view value) noexcept;
    void raw(char c) noexcept;
    void raw(std::string_view text) noexcept;

    std::span<char> storage_;
    std::string_view type_;
    std::size_t needed_ = 0;
    std::size_t depth_ = 0;
    Level levels_[kDeepest] = {};
    bool filled_[kDeepest] = {}; // the level has a member already: the next one needs a comma
    bool malformed_ = false;
};

} // namespace spinkick
