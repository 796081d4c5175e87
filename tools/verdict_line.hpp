// SPDX-License-Identifier: BSD-2-Clause
//
// The line that decides a run: `spinkick: verdict: PASS plan=47 pass=41 fail=0 error=0 skip=6 crc=1a2b3c4d`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace spinkick::report {

/// How many tests ended in which way.
struct Counts {
    std::uint32_t pass = 0;
    std::uint32_t fail = 0;
    std::uint32_t error = 0;
    std::uint32_t skip = 0;

    friend constexpr bool operator==(const Counts&, const Counts&) noexcept = default;
};

/// The run's word. The image says one of the first four; CRASH and HANG are what the host says of a run without a word.
enum class Word : std::uint8_t { PASS, FAIL, ERROR, SKIP, CRASH, HANG };

[[nodiscard]] std::string_view name_of(Word word) noexcept;
[[nodiscard]] std::optional<Word> word_named(std::string_view name) noexcept;

/// FAIL if any test failed, else ERROR if any erred, else PASS if any passed, else SKIP.
[[nodiscard]] constexpr Word word_of(const Counts& counts) noexcept {
    if (counts.fail != 0)
        return Word::FAIL;
    if (counts.error != 0)
        return Word::ERROR;
    return counts.pass != 0 ? Word::PASS : Word::SKIP;
}

struct VerdictLine {
    Word word = Word::ERROR;
    std::uint32_t plan = 0;
    Counts counts;

    friend constexpr bool operator==(const VerdictLine&, const VerdictLine&) noexcept = default;
};

inline constexpr std::string_view kVerdictStart = "spinkick: verdict: ";

/// Reads a text that begins with kVerdictStart. Nothing if it is cut, malformed, or its checksum does not match; text
/// behind the checksum is foreign and ignored.
[[nodiscard]] std::optional<VerdictLine> parse_verdict(std::string_view text);

} // namespace spinkick::report
