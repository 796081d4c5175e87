// SPDX-License-Identifier: BSD-2-Clause
#include "tools/tap.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

/// TAP consumers take `not ok 1 x # SKIP` and `# TODO`, in any case, for no failure.
bool looks_like_directive(std::string_view reason) {
    std::string start{reason.substr(0, 4)};
    std::transform(start.begin(), start.end(), start.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return start == "SKIP" || start == "TODO";
}

std::string result_line(std::size_t number, const std::string& name, const TestResult& test) {
    const std::string reason = printable(test.reason);
    switch (test.status) {
    case Status::pass:
        return fmt::format("ok {} {}\n", number, name);
    case Status::skip:
        return fmt::format("ok {} {} # SKIP {}\n", number, name, reason);
    case Status::error:
        return fmt::format("not ok {} {} # ERROR {}\n", number, name, reason);
    case Status::fail:
        if (reason.empty())
            return fmt::format("not ok {} {}\n", number, name);
        return fmt::format("not ok {} {} # {}{}\n", number, name, looks_like_directive(reason) ? "failed: " : "",
                           reason);
    case Status::not_run:
        break;
    }
    return fmt::format("not ok {} {} # not run{}{}\n", number, name, reason.empty() ? "" : ": ", reason);
}

} // namespace

std::string to_tap(const Results& results) {
    std::string tap = fmt::format("KTAP version 1\n1..{}\n", results.tests.size());
    const auto put_record = [&tap](const Json& record) {
        fmt::format_to(std::back_inserter(tap), "# json {}\n",
                       record.dump(-1, ' ', true, Json::error_handler_t::replace));
    };
    const auto belongs = [](const Json& record, const TestResult& test) {
        const auto name = record.find("test");
        return name != record.end() && *name == test.name && run_id_of(record) == test.id;
    };
    for (const Json& record : results.records)
        if (std::none_of(results.tests.begin(), results.tests.end(),
                         [&](const TestResult& test) { return belongs(record, test); }))
            put_record(record);

    const auto names = unique_names(results);
    for (std::size_t i = 0; i < results.tests.size(); ++i) {
        for (const Json& record : results.records)
            if (belongs(record, results.tests[i]))
                put_record(record);
        tap += result_line(i + 1, names[i], results.tests[i]);
    }
    // A run that ended otherwise than its tests say must not look clean to a reader that counts test lines only.
    for (const RunVerdict& run : results.runs) {
        if (run.reason.empty())
            continue;
        const std::string mark = results.runs.size() > 1 ? text_of(run.id) + ": " : "";
        fmt::format_to(std::back_inserter(tap), "Bail out! {}{}: {}\n", mark, name_of(run.word), printable(run.reason));
    }
    return tap;
}

} // namespace spinkick::report
