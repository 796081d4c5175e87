// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/report.hpp"

#include <algorithm>

#include "kernel/console.hpp"
#include "kernel/crc32.hpp"
#include "kernel/json.hpp"
#include "kernel/log.hpp"
#include "kernel/test/environment.hpp"
#include "kernel/text.hpp"

namespace spinkick::test {
namespace {

using namespace std::string_view_literals;

/// The verdict is one line of many on a stream that others write to as well: three copies, so that one may be hit.
constexpr int kVerdictCopies = 3;

int width(std::string_view text) noexcept { return static_cast<int>(std::min<std::size_t>(text.size(), 400)); }

/// True if a reader could take the reason of a failure for one of TAP's directives, which turn a failure into less.
bool looks_like_directive(std::string_view reason) noexcept {
    const auto starts_with = [&](std::string_view word) {
        return reason.size() >= word.size() && std::equal(word.begin(), word.end(), reason.begin(), [](char w, char r) {
                   return w == (r >= 'a' && r <= 'z' ? static_cast<char>(r - 'a' + 'A') : r);
               });
    };
    return starts_with("SKIP"sv) || starts_with("TODO"sv) || starts_with("ERROR"sv);
}

} // namespace

void Counts::add(Status status) noexcept {
    switch (status) {
    case Status::pass:
        ++pass;
        break;
    case Status::skip:
        ++skip;
        break;
    case Status::fail:
        ++fail;
        break;
    case Status::none:
    case Status::error:
        ++error;
        break;
    }
}

Verdict verdict_of(const Counts& counts) noexcept {
    if (counts.fail != 0)
        return Verdict::fail;
    if (counts.error != 0)
        return Verdict::error;
    return counts.pass != 0 ? Verdict::pass : Verdict::skip;
}

std::string_view name(Verdict verdict) noexcept {
    switch (verdict) {
    case Verdict::pass:
        return "PASS"sv;
    case Verdict::fail:
        return "FAIL"sv;
    case Verdict::skip:
        return "SKIP"sv;
    case Verdict::error:
        break;
    }
    return "ERROR"sv;
}

std::string_view name(Status status) noexcept {
    switch (status) {
    case Status::none:
        return "none"sv;
    case Status::pass:
        return "pass"sv;
    case Status::skip:
        return "skip"sv;
    case Status::fail:
        return "fail"sv;
    case Status::error:
        break;
    }
    return "error"sv;
}

void report_header() noexcept {
    log("KTAP version 1");
    emit_context_record();
}

void report_plan(std::uint32_t plan) noexcept { log("1..%u", plan); }

void report_begin(std::uint32_t number, std::string_view name) noexcept {
    log("# begin %u %.*s", number, width(name), name.data());
}

void report_duration(std::string_view test_name, Status status, Nanoseconds elapsed) noexcept {
    char storage[300];
    JsonLine line(storage, "test"sv);
    line.text("name"sv, test_name).number("ns"sv, elapsed.value).text("status"sv, name(status)).emit();
}

void report_result(std::uint32_t number, std::string_view name, Status status, std::string_view reason) noexcept {
    if (reason.empty())
        reason = "no reason given"sv;
    const int name_size = width(name);
    const int reason_size = width(reason);
    switch (status) {
    case Status::pass:
        log("ok %u %.*s", number, name_size, name.data());
        break;
    case Status::skip:
        log("ok %u %.*s # SKIP %.*s", number, name_size, name.data(), reason_size, reason.data());
        break;
    case Status::fail:
        log("not ok %u %.*s # %s%.*s", number, name_size, name.data(), looks_like_directive(reason) ? "failed: " : "",
            reason_size, reason.data());
        break;
    case Status::none:
    case Status::error:
        log("not ok %u %.*s # ERROR %.*s", number, name_size, name.data(), reason_size, reason.data());
        break;
    }
}

Verdict report_verdict(const Counts& counts) noexcept {
    const Verdict verdict = verdict_of(counts);
    char storage[160];
    TextBuffer line(storage);
    line.append("spinkick: verdict: "sv);
    line.append(name(verdict));
    format(line, " plan=%u pass=%u fail=%u error=%u skip=%u ", counts.plan, counts.pass, counts.fail, counts.error,
           counts.skip);
    format(line, "crc=%08x", crc32(line.view()));
    for (int copy = 0; copy < kVerdictCopies; ++copy)
        console_write_line(line.view());
    return verdict;
}

Verdict report_bad_input(std::string_view text) noexcept {
    log("spinkick: error: %.*s", width(text), text.data());
    Counts counts;
    counts.error = 1;
    return report_verdict(counts);
}

} // namespace spinkick::test
