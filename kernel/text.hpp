// SPDX-License-Identifier: BSD-2-Clause
//
// Text in bounded memory. Whatever is written, nothing leaves the array; a text that did not fit ends in "..." and says
// so by truncated(), since a cut number or name that looks whole is worse than none.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <span>
#include <string_view>

namespace spinkick {

/// Writes into a caller's array. The text is always NUL-terminated, so an array of n bytes holds n - 1 characters.
class TextBuffer {
  public:
    explicit constexpr TextBuffer(std::span<char> storage) noexcept : storage_(storage) {
        if (!storage_.empty())
            storage_[0] = '\0';
    }

    constexpr void append(char c) noexcept { append(std::string_view{&c, 1}); }
    constexpr void append(std::string_view text) noexcept;
    /// Appends the same character `n` times.
    constexpr void fill(char c, std::size_t n) noexcept {
        for (std::size_t i = 0; i < n && !truncated_; ++i)
            append(c);
    }
    constexpr void clear() noexcept {
        size_ = 0;
        truncated_ = false;
        if (!storage_.empty())
            storage_[0] = '\0';
    }

    [[nodiscard]] constexpr std::string_view view() const noexcept { return {storage_.data(), size_}; }
    [[nodiscard]] constexpr const char* c_str() const noexcept { return storage_.empty() ? "" : storage_.data(); }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] constexpr bool truncated() const noexcept { return truncated_; }

  private:
    static constexpr std::string_view kCutMark = "...";

    [[nodiscard]] constexpr std::size_t capacity() const noexcept { return storage_.empty() ? 0 : storage_.size() - 1; }

    std::span<char> storage_;
    std::size_t size_ = 0;
    bool truncated_ = false;
};

constexpr void TextBuffer::append(std::string_view text) noexcept {
    if (truncated_ || text.empty())
        return;
    const std::size_t room = capacity() - size_;
    const std::size_t fits = text.size() < room ? text.size() : room;
    for (std::size_t i = 0; i < fits; ++i)
        storage_[size_ + i] = text[i];
    size_ += fits;
    if (fits < text.size()) {
        truncated_ = true;
        const std::size_t mark = kCutMark.size() < size_ ? kCutMark.size() : size_;
        for (std::size_t i = 0; i < mark; ++i)
            storage_[size_ - mark + i] = kCutMark[i];
    }
    if (!storage_.empty())
        storage_[size_] = '\0';
}

/// Appends as printf would: %s %c %d %i %u %x %X %p %%, lengths hh h l ll z j t, width, `-`, `0`, `#`, precision, `*`.
/// There is no floating point. A conversion outside this set is shown as it stands, with the rest of the format, and
/// takes no argument: the arguments after it can no longer be trusted.
void format(TextBuffer& out, const char* fmt, ...) noexcept __attribute__((format(printf, 2, 3)));
void vformat(TextBuffer& out, const char* fmt, std::va_list args) noexcept __attribute__((format(printf, 2, 0)));

/// Replaces what would break a line, or act on a terminal, by '?'. Texts from outside (command line, tables, loader)
/// pass through here before they reach the console.
constexpr void replace_control_characters(std::span<char> text) noexcept {
    for (char& c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f)
            c = '?';
    }
}

/// A text with its own memory, for results that carry an error.
template <std::size_t N>
class FixedText {
  public:
    /// Replaces the text.
    void set(const char* fmt, ...) noexcept __attribute__((format(printf, 2, 3))) {
        std::va_list args;
        va_start(args, fmt);
        vset(fmt, args);
        va_end(args);
    }
    /// The same, unless there is a text already: the first error is the cause, later ones follow from it.
    void set_first(const char* fmt, ...) noexcept __attribute__((format(printf, 2, 3))) {
        if (!empty())
            return;
        std::va_list args;
        va_start(args, fmt);
        vset(fmt, args);
        va_end(args);
    }
    void vset(const char* fmt, std::va_list args) noexcept __attribute__((format(printf, 2, 0))) {
        TextBuffer out(storage_);
        vformat(out, fmt, args);
        size_ = out.size();
    }
    constexpr void clear() noexcept {
        size_ = 0;
        storage_[0] = '\0';
    }

    [[nodiscard]] constexpr std::string_view view() const noexcept { return {storage_, size_}; }
    [[nodiscard]] constexpr const char* c_str() const noexcept { return storage_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

  private:
    char storage_[N] = {};
    std::size_t size_ = 0;
};

/// What a parser says about bad input.
using ErrorText = FixedText<320>;

} // namespace spinkick
