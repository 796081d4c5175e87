// SPDX-License-Identifier: BSD-2-Clause
#include "tools/serial_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

// More than any run has; a damaged number must not make the reader allocate for four thousand million tests.
constexpr std::uint32_t kMaxPlan = 100'000;
// A histogram record is some 10 KiB. What is longer is a log without line ends, and is not kept in memory.
constexpr std::size_t kMaxLine = std::size_t{1} << 20;
// Records are flat; a list of lists is the deepest that they hold.
constexpr int kMaxJsonDepth = 8;

constexpr std::array<std::pair<Status, std::string_view>, 5> kStatuses{{{Status::pass, "pass"},
                                                                        {Status::skip, "skip"},
                                                                        {Status::error, "error"},
                                                                        {Status::fail, "fail"},
                                                                        {Status::not_run, "not_run"}}};

/// What stands directly before a form in its line.
enum class Before : std::uint8_t { nothing, separated, glued };

Before before(std::string_view text, std::size_t position) {
    text = text.substr(0, position);
    const std::size_t last = text.find_last_not_of(" \t");
    if (last == std::string_view::npos)
        return Before::nothing;
    // "(d0) ", "vm1: ", "[  1.5] " end in punctuation and a blank.
    const char c = text[last];
    const bool separated = c > 0x20 && c < 0x7f && !is_alphanumeric(c) && last + 1 < text.size();
    return separated ? Before::separated : Before::glued;
}

/// Takes `prefix` off the front of `text` if it is there.
bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix))
        return false;
    text.remove_prefix(prefix.size());
    return true;
}

std::string_view take_word(std::string_view& text) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    return word;
}

bool is_test_name(std::string_view name) {
    return !name.empty() && name.find('.') != std::string_view::npos &&
           std::all_of(name.begin(), name.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

std::optional<std::uint32_t> test_number(std::string_view text) {
    const auto number = parse_number<std::uint32_t>(text);
    return number && *number >= 1 && *number <= kMaxPlan ? number : std::nullopt;
}

struct ResultLine {
    std::uint32_t number = 0;
    std::string_view name;
    Status status = Status::pass;
    std::string_view reason;
};

std::optional<ResultLine> parse_result(std::string_view text) {
    ResultLine result;
    const bool failed = take(text, "not ");
    if (!take(text, "ok "))
        return std::nullopt;
    const auto number = test_number(take_word(text));
    if (!number || !take(text, " "))
        return std::nullopt;
    result.number = *number;
    result.name = take_word(text);
    if (!is_test_name(result.name))
        return std::nullopt;
    if (text.empty()) {
        result.status = failed ? Status::fail : Status::pass;
        return result;
    }
    if (!take(text, " # "))
        return std::nullopt;
    if (failed)
        result.status = take(text, "ERROR") && (text.empty() || take(text, " ")) ? Status::error : Status::fail;
    else if (take(text, "SKIP") && (text.empty() || take(text, " ")))
        result.status = Status::skip;
    else
        return std::nullopt; // the contract knows no other text behind a pass: this was something else once
    result.reason = text;
    return result;
}

} // namespace

std::string_view name_of(Status status) noexcept {
    for (const auto& [value, name] : kStatuses)
        if (value == status)
            return name;
    return "?";
}

std::optional<Status> status_named(std::string_view name) noexcept {
    for (const auto& [value, text] : kStatuses)
        if (text == name)
            return value;
    return std::nullopt;
}

std::string Stream::running_text() const {
    const auto test = tests.find(running);
    if (test != tests.end())
        return fmt::format("test {} {} was running", running, test->second.name);
    constexpr std::size_t kMost = 120;
    return last_line.empty() ? "" : fmt::format("the last line is `{}`", printable(last_line.substr(0, kMost)));
}

void StreamParser::feed(std::string_view bytes) {
    stream_.bytes += bytes.size();
    stream_.nul_bytes += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\0'));
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, end);
        if (line_.size() + piece.size() > kMaxLine)
            overlong_ = true;
        else
            line_ += piece;
        if (end == std::string_view::npos)
            return;
        if (!overlong_)
            line(line_, true);
        line_.clear();
        overlong_ = false;
        bytes.remove_prefix(end + 1);
    }
}

void StreamParser::end() {
    if (!overlong_ && !line_.empty())
        line(line_, false);
    line_.clear();
    overlong_ = false;
}

void StreamParser::line(std::string_view raw, bool complete) {
    if (stream_.restarted)
        return;
    std::string clean = without_terminal_codes(raw);
    while (!clean.empty() && clean.back() == '\r')
        clean.pop_back();
    std::string_view text = clean;
    while (take(text, "\r")) {
    }
    if (text.find_first_not_of(" \t") != std::string_view::npos)
        stream_.last_line = text;
    verdicts_in(text);
    // The first form in a line owns the rest of it: a reason or a comment may quote any other form.
    for (std::size_t position = 0; position < text.size(); ++position)
        if (form_at(text, position, complete))
            return;
}

void StreamParser::verdicts_in(std::string_view text) {
    for (std::size_t at = text.find(kVerdictStart); at != std::string_view::npos;
         at = text.find(kVerdictStart, at + 1)) {
        const auto verdict = parse_verdict(text.substr(at));
        if (!verdict)
            ++stream_.damaged_verdicts;
        else if (!stream_.verdict)
            stream_.verdict = verdict;
        else if (*verdict != *stream_.verdict)
            stream_.verdicts_differ = true;
    }
}

bool StreamParser::form_at(std::string_view text, std::size_t position, bool complete) {
    std::string_view rest = text.substr(position);
    switch (rest.front()) {
    case 's':
        if (rest.starts_with(kVerdictStart))
            return true;
        if (take(rest, "spinkick: boot: ")) {
            if (!complete)
                return true;
            if (stream_.boot)
                stream_.restarted = true;
            else
                stream_.boot = printable(rest);
            return true;
        }
        if (take(rest, "spinkick: error: ")) {
            if (!stream_.error)
                stream_.error = printable(rest);
            return true;
        }
        if (take(rest, "spinkick: exit device absent")) {
            stream_.exit_device_absent = true;
            return true;
        }
        return false;
    case 'K':
        if (rest != "KTAP version 1" || !complete)
            return false;
        stream_.ktap = true;
        return true;
    case 'P':
        if (before(text, position) == Before::glued || !take(rest, "PANIC: "))
            return false;
        if (!stream_.panic) {
            stream_.panic = printable(rest);
            stream_.panic_after_verdict = stream_.verdict.has_value();
        }
        return true;
    case '1':
        return plan_at(text, position, complete);
    case 'n':
    case 'o':
        return result_at(text, position, complete);
    case '#':
        return comment_at(text, position, complete);
    default:
        return false;
    }
}

bool StreamParser::plan_at(std::string_view text, std::size_t position, bool complete) {
    std::string_view rest = text.substr(position);
    if (!complete || before(text, position) == Before::glued || !take(rest, "1.."))
        return false;
    const auto plan = parse_number<std::uint32_t>(rest);
    if (!plan || *plan > kMaxPlan)
        return false;
    if (stream_.plan && *stream_.plan != *plan)
        stream_.conflicts.push_back(fmt::format("two plans: 1..{} and 1..{}", *stream_.plan, *plan));
    else
        stream_.plan = plan;
    return true;
}

bool StreamParser::result_at(std::string_view text, std::size_t position, bool complete) {
    const auto result = parse_result(text.substr(position));
    if (!result || !complete)
        return false;
    const bool glued = before(text, position) == Before::glued;
    const auto known = stream_.tests.find(result->number);
    const bool begun = known != stream_.tests.end() && known->second.begun;
    if (begun ? known->second.name != result->name : glued)
        return false;

    StreamTest& test = stream_.tests[result->number];
    const std::string reason = printable(result->reason);
    if (test.status) {
        if (test.status == result->status && test.name == result->name)
            return true; // the same line twice: a console that is written to two devices
        stream_.conflicts.push_back(fmt::format("two results for test {}: {} {} and {} {}", result->number,
                                                name_of(*test.status), test.name, name_of(result->status),
                                                result->name));
        if (result->status <= *test.status)
            return true;
    } else {
        stream_.completed.push_back(result->number);
    }
    test.name = std::string{result->name};
    test.status = result->status;
    test.reason = reason;
    test.glued = glued;
    if (stream_.running == result->number)
        stream_.running = 0;
    return true;
}

bool StreamParser::comment_at(std::string_view text, std::size_t position, bool complete) {
    std::string_view rest = text.substr(position);
    if (!take(rest, "# "))
        return false;
    if (!complete)
        return true;
    if (rest.starts_with("json ")) {
        rest.remove_prefix(5);
        record(rest);
    } else if (take(rest, "begin ")) {
        const auto number = test_number(take_word(rest));
        if (!number || !take(rest, " ") || !is_test_name(rest))
            return true;
        StreamTest& test = stream_.tests[*number];
        if (test.begun && test.name != rest)
            stream_.conflicts.push_back(fmt::format("test {} began twice: as {} and as {}", *number, test.name, rest));
        if (test.status)
            return true;
        test.begun = true;
        test.name = std::string{rest};
        stream_.running = *number;
    }
    return true;
}

void StreamParser::record(std::string_view json) {
    bool too_deep = false;
    const auto watch_depth = [&too_deep](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kMaxJsonDepth;
        return !too_deep;
    };
    Json parsed = Json::parse(json, watch_depth, false);
    if (too_deep || !parsed.is_object() || !parsed.contains("type") || !parsed["type"].is_string()) {
        ++stream_.damaged_records;
        return;
    }
    if (parsed["type"] == "test") {
        const auto test = stream_.tests.find(stream_.running);
        const auto ns = parsed.find("ns");
        if (test != stream_.tests.end() && ns != parsed.end() && ns->is_number_unsigned())
            test->second.ns = ns->get<std::uint64_t>();
    }
    stream_.records.push_back({stream_.running, std::move(parsed)});
}

} // namespace spinkick::report
