// SPDX-License-Identifier: BSD-2-Clause
#include "tools/host_counters.hpp"

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/collect.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

Json hypercalls(std::uint64_t kicks, std::uint64_t yields) {
    return {{"type", "hypercalls"}, {"kick_cpu", kicks}, {"sched_yield", yields}};
}

Status judged(const std::vector<Json>& records, const std::string& counters) {
    return yields_for_each_kick(records, parse_host_counters(counters), {}).status;
}

TEST(ReportHostCounters, ReadsNamesAndNumbers) {
    const auto counters = parse_host_counters("  halt_exits=12 hypercalls=18446744073709551615 ");
    EXPECT_EQ(counters.size(), 2u);
    EXPECT_EQ(counters.at("halt_exits"), 12u);
    EXPECT_EQ(counters.at("hypercalls"), UINT64_MAX);
    EXPECT_TRUE(parse_host_counters("").empty());
    for (const char* bad : {"halt_exits", "=3", "halt_exits=", "halt_exits=x", "halt_exits=-1", "halt_exits=1x",
                            "halt_exits=18446744073709551616"})
        EXPECT_THROW((void)parse_host_counters(bad), InputError) << bad;
}

TEST(ReportHostCounters, AYieldForEachKickAndEachSchedYield) {
    EXPECT_EQ(judged({hypercalls(100, 0)}, "directed_yield_attempted=100"), Status::pass);
    EXPECT_EQ(judged({hypercalls(100, 40)}, "directed_yield_attempted=140"), Status::pass);
    EXPECT_EQ(judged({hypercalls(100, 40)}, "directed_yield_attempted=40"), Status::fail) << "kicks without a yield";
    EXPECT_EQ(judged({hypercalls(100, 40)}, "directed_yield_attempted=139"), Status::fail);
    EXPECT_EQ(judged({hypercalls(100, 40)}, "directed_yield_attempted=141"), Status::fail);
    EXPECT_EQ(judged({hypercalls(0, 0)}, "directed_yield_attempted=0"), Status::skip);
}

TEST(ReportHostCounters, WhatIsMissingIsSaidAndNeverAPass) {
    EXPECT_EQ(judged({hypercalls(1, 0)}, "halt_exits=3"), Status::error);
    EXPECT_EQ(judged({hypercalls(1, 0)}, ""), Status::error);
    EXPECT_EQ(judged({}, "directed_yield_attempted=3"), Status::skip);
    EXPECT_EQ(judged({{{"type", "hypercalls"}, {"kick_cpu", 3}}}, "directed_yield_attempted=3"), Status::skip);
}

Results with_counters(const std::string& counters) {
    StreamParser parser;
    std::string log = std::string(sample::kStart.substr(0, sample::kStart.size() - 5)) +
                      "1..1\n# begin 1 smp.all_up\nok 1 smp.all_up\n";
    log += "# json {\"type\":\"hypercalls\",\"kick_cpu\":7,\"sched_yield\":1}\n";
    Counts counts;
    counts.pass = 1;
    log += sample::three(sample::verdict("PASS", 1, counts));
    parser.feed(log);
    parser.end();
    RunFacts facts;
    facts.platform = "nested-kvm";
    facts.timing = "emulated";
    facts.ending.qemu_exit = 33;
    facts.host_counters = counters;
    return results_of(parser.stream(), facts);
}

TEST(ReportHostCounters, ThePartOfTheHostDecidesTheRun) {
    const auto good = with_counters("directed_yield_attempted=8 halt_exits=5");
    EXPECT_EQ(good.word(), Word::PASS) << good.reason();
    EXPECT_EQ(good.tests.size(), 2u);
    EXPECT_TRUE(std::any_of(good.records.begin(), good.records.end(), [](const Json& record) {
        return record.value("type", "") == "host_counters" && record.value("halt_exits", 0u) == 5;
    }));
    const auto bad = with_counters("directed_yield_attempted=1 halt_exits=5");
    EXPECT_EQ(bad.word(), Word::FAIL);
    EXPECT_NE(bad.reason().find("directed_yield_attempted is 1"), std::string::npos) << bad.reason();
    EXPECT_EQ(with_counters("halt_exits=5").word(), Word::ERROR);
}

} // namespace
} // namespace spinkick::report
