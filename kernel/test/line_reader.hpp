// SPDX-License-Identifier: BSD-2-Clause
//
// Lines out of the bytes that come in over a console: typed by a person, sent by a program, or noise.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace spinkick::test {

class LineReader {
  public:
    static constexpr std::size_t kMost = 480; ///< characters; a longer line is lost, and said to be

    /// True if `byte` has ended a line: line() and is_too_long() say what it was, until the next byte.
    [[nodiscard]] constexpr bool take(char byte) noexcept {
        constexpr char kBackspace = '\b', kDelete = 0x7f, kEraseLine = 0x15; // Ctrl-U
        if (ended_)
            size_ = 0, too_long_ = ended_ = false;
        if (byte == '\n' || byte == '\r') {
            ended_ = size_ != 0 || too_long_; // a terminal sends one, another one the other, some both
            return ended_;
        }
        if (byte == kEraseLine)
            size_ = 0, too_long_ = false;
        else if (byte == kBackspace || byte == kDelete)
            size_ -= size_ != 0 ? 1u : 0u;
        else if (byte >= ' ' && byte <= '~' && size_ < kMost)
            storage_[size_++] = byte;
        else if (size_ == kMost)
            too_long_ = true;
        return false;
    }

    [[nodiscard]] constexpr std::string_view line() const noexcept { return {storage_.data(), size_}; }
    [[nodiscard]] constexpr bool is_too_long() const noexcept { return too_long_; }

  private:
    std::array<char, kMost> storage_{};
    std::size_t size_ = 0;
    bool too_long_ = false;
    bool ended_ = false;
};

} // namespace spinkick::test
