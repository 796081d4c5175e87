// SPDX-License-Identifier: BSD-2-Clause
#include "tools/junit.hpp"

#include <iterator>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

/// Escaped for the content of an element; XML 1.0 has no way to write most control characters at all.
std::string xml_text(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else
            out += c;
    }
    return out;
}

/// Escaped for an attribute between double quotes.
std::string xml(std::string_view text) {
    std::string out;
    for (const char c : xml_text(text)) {
        if (c == '"')
            out += "&quot;";
        else
            out += c;
    }
    return out;
}

struct Case {
    std::string name;
    Status status = Status::pass;
    std::string reason;
    std::uint64_t ns = 0;
    std::string output;
};

struct Suite {
    std::vector<Case> cases;
    Tally tally;
    std::uint64_t ns = 0;

    void add(Case testcase) {
        tally.add(testcase.status);
        ns += testcase.ns;
        cases.push_back(std::move(testcase));
    }
};

std::string in_seconds(std::uint64_t ns) { return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000); }

std::string element_of(const Case& testcase) {
    const std::string message = xml(testcase.reason);
    switch (testcase.status) {
    case Status::pass:
        return "";
    case Status::skip:
        return fmt::format("<skipped message=\"{}\"/>", message);
    case Status::fail:
        return fmt::format("<failure type=\"fail\" message=\"{}\">{}</failure>", message, xml_text(testcase.reason));
    case Status::error:
        return fmt::format("<error type=\"error\" message=\"{}\">{}</error>", message, xml_text(testcase.reason));
    case Status::not_run:
        break;
    }
    return fmt::format("<error type=\"not_run\" message=\"not run{}{}\"/>", message.empty() ? "" : ": ", message);
}

} // namespace

std::string to_junit(const Results& results) {
    std::map<std::string, Suite> suites;
    const auto names = unique_names(results);
    for (std::size_t i = 0; i < results.tests.size(); ++i) {
        const TestResult& test = results.tests[i];
        Case testcase{names[i], test.status, test.reason, test.ns.value_or(0), ""};
        for (const Json& record : results.records)
            if (const auto owner = record.find("test");
                owner != record.end() && *owner == test.name && run_id_of(record) == test.id)
                testcase.output += xml_text(record.dump(-1, ' ', true, Json::error_handler_t::replace)) + "\n";
        suites[test.name.substr(0, test.name.find('.'))].add(std::move(testcase));
    }
    for (const RunVerdict& run : results.runs) {
        if (run.reason.empty())
            continue;
        const std::string mark = results.runs.size() > 1 ? text_of(run.id) : "";
        suites["run"].add({fmt::format("run.verdict{}{}", mark.empty() ? "" : " ", mark), Status::error,
                           fmt::format("{}: {}", name_of(run.word), run.reason), 0, ""});
    }

    const std::string platform = xml(results.runs.empty() ? "" : results.runs.front().platform);
    Tally all;
    std::uint64_t ns = 0;
    std::string body;
    const auto put = std::back_inserter(body);
    for (const auto& [name, suite] : suites) {
        const Tally& tally = suite.tally;
        fmt::format_to(put,
                       "  <testsuite name=\"{}\" package=\"spinkick.{}\" hostname=\"{}\" tests=\"{}\" failures=\"{}\" "
                       "errors=\"{}\" skipped=\"{}\" time=\"{}\">\n",
                       xml(name), platform, platform, tally.total(), tally.fail, tally.error + tally.not_run,
                       tally.skip, in_seconds(suite.ns));
        for (const Case& testcase : suite.cases) {
            fmt::format_to(put, "    <testcase classname=\"spinkick.{}.{}\" name=\"{}\" time=\"{}\">", platform,
                           xml(name), xml(testcase.name), in_seconds(testcase.ns));
            body += element_of(testcase);
            if (!testcase.output.empty())
                fmt::format_to(put, "<system-out>{}</system-out>", testcase.output);
            body += "</testcase>\n";
        }
        body += "  </testsuite>\n";
        all.pass += tally.pass;
        all.fail += tally.fail;
        all.error += tally.error + tally.not_run;
        all.skip += tally.skip;
        ns += suite.ns;
    }
    return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                       "<testsuites name=\"spinkick\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">\n{}"
                       "</testsuites>\n",
                       all.total(), all.fail, all.error, in_seconds(ns), body);
}

} // namespace spinkick::report
