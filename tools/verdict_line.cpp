// SPDX-License-Identifier: BSD-2-Clause
#include "tools/verdict_line.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "tools/crc32.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

constexpr std::array<std::pair<Word, std::string_view>, 6> kWords{{{Word::PASS, "PASS"},
                                                                   {Word::FAIL, "FAIL"},
                                                                   {Word::ERROR, "ERROR"},
                                                                   {Word::SKIP, "SKIP"},
                                                                   {Word::CRASH, "CRASH"},
                                                                   {Word::HANG, "HANG"}}};

} // namespace

std::string_view name_of(Word word) noexcept {
    for (const auto& [value, name] : kWords)
        if (value == word)
            return name;
    return "?";
}

std::optional<Word> word_named(std::string_view name) noexcept {
    for (const auto& [value, text] : kWords)
        if (text == name)
            return value;
    return std::nullopt;
}

std::optional<VerdictLine> parse_verdict(std::string_view text) {
    constexpr std::string_view kCrc = " crc=";
    constexpr std::size_t kCrcDigits = 8;
    if (!text.starts_with(kVerdictStart))
        return std::nullopt;
    const std::size_t crc_at = text.find(kCrc);
    if (crc_at == std::string_view::npos || text.size() < crc_at + kCrc.size() + kCrcDigits)
        return std::nullopt;
    if (fmt::format("{:08x}", crc32(text.substr(0, crc_at + 1))) != text.substr(crc_at + kCrc.size(), kCrcDigits))
        return std::nullopt;

    VerdictLine verdict;
    std::string_view rest = text.substr(0, crc_at);
    rest.remove_prefix(kVerdictStart.size());
    const std::size_t word_end = rest.find(' ');
    const auto word = word_named(rest.substr(0, word_end));
    if (!word || *word == Word::CRASH || *word == Word::HANG || word_end == std::string_view::npos)
        return std::nullopt;
    verdict.word = *word;
    rest.remove_prefix(word_end);

    const std::array<std::pair<std::string_view, std::uint32_t*>, 5> fields{{{" plan=", &verdict.plan},
                                                                             {" pass=", &verdict.counts.pass},
                                                                             {" fail=", &verdict.counts.fail},
                                                                             {" error=", &verdict.counts.error},
                                                                             {" skip=", &verdict.counts.skip}}};
    for (const auto& [key, value] : fields) {
        if (!rest.starts_with(key))
            return std::nullopt;
        rest.remove_prefix(key.size());
        const std::size_t end = std::min(rest.find(' '), rest.size());
        const auto number = parse_number<std::uint32_t>(rest.substr(0, end));
        if (!number)
            return std::nullopt;
        *value = *number;
        rest.remove_prefix(end);
    }
    return rest.empty() ? std::optional{verdict} : std::nullopt;
}

} // namespace spinkick::report
