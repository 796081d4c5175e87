// SPDX-License-Identifier: BSD-2-Clause
#include "tools/host_counters.hpp"

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/collect.hpp"
#include "tools/host_table.hpp"
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
    EXPECT_EQ(good.tests.size(), 3u);
    EXPECT_TRUE(std::any_of(good.records.begin(), good.records.end(), [](const Json& record) {
        return record.value("type", "") == "host_counters" && record.value("halt_exits", 0u) == 5;
    }));
    const auto bad = with_counters("directed_yield_attempted=1 halt_exits=5");
    EXPECT_EQ(bad.word(), Word::FAIL);
    EXPECT_NE(bad.reason().find("directed_yield_attempted is 1"), std::string::npos) << bad.reason();
    EXPECT_EQ(with_counters("halt_exits=5").word(), Word::ERROR);
}

// --- between sync points

Json synced(const char* lock, std::uint64_t begin, std::uint64_t halts, std::uint64_t kicks, std::uint64_t yields) {
    return {{"type", "bench"},
            {"bench", "contention"},
            {"lock", lock},
            {"backend", "kvm"},
            {"rep", 1},
            {"cpus", 4},
            {"platform", "nested"},
            {"timing", "emulated"},
            {"halts", halts},
            {"kvm_kick_cpu", kicks},
            {"kvm_sched_yield", yields},
            {"sync_begin", begin},
            {"sync_end", begin + 1}};
}

constexpr std::string_view kSyncs = "1 directed_yield_attempted=10 halt_exits=5 exits=100\n"
                                    "2 directed_yield_attempted=17 halt_exits=9 exits=300\n"
                                    "3 directed_yield_attempted=17 halt_exits=9\n";

std::vector<Json> with_syncs(std::vector<Json> records, std::string_view syncs = kSyncs) {
    const auto read = parse_host_syncs(syncs, "syncs");
    for (Json& record : records)
        add_host_counters(record, read);
    return records;
}

TEST(ReportHostSyncs, ARecordGetsWhatGrewBetweenItsPoints) {
    const auto records = with_syncs({synced("pv-queued", 1, 4, 5, 2), synced("pv-queued", 2, 0, 0, 0)});
    EXPECT_EQ(records[0]["host_directed_yield_attempted"], 7);
    EXPECT_EQ(records[0]["host_halt_exits"], 4);
    EXPECT_EQ(records[0]["host_exits"], 200);
    EXPECT_EQ(records[1]["host_halt_exits"], 0);
    EXPECT_FALSE(records[1].contains("host_exits")) << "missing at its end";
    EXPECT_FALSE(with_syncs({synced("pv-queued", 3, 0, 0, 0)})[0].contains("host_halt_exits")) << "there is no fourth";
}

TEST(ReportHostSyncs, ABadFileNamesItsLine) {
    EXPECT_TRUE(parse_host_syncs("", "f").empty());
    EXPECT_EQ(parse_host_syncs("7", "f").size(), 1u) << "counters that could not be read";
    for (const auto& [text, line] :
         std::initializer_list<std::pair<const char*, const char*>>{{"x halts=1", "f: line 1"},
                                                                    {"1 a=1\n\n", "f: line 2"},
                                                                    {"1 a=1\n2 a=", "f: line 2"},
                                                                    {"1x a=1", "f: line 1"}})
        try {
            (void)parse_host_syncs(text, "f");
            ADD_FAILURE() << text;
        } catch (const InputError& error) {
            EXPECT_TRUE(std::string_view{error.what()}.starts_with(line)) << error.what();
        }
}

TEST(ReportHostSyncs, CountsMustAgreeInEachMeasurement) {
    const auto judged_between = [](std::vector<Json> records) {
        return same_counts_between_syncs(with_syncs(std::move(records)), {});
    };
    EXPECT_EQ(judged_between({synced("pv-queued", 1, 4, 5, 2)}).status, Status::pass);
    const auto kick = judged_between({synced("pv-queued", 2, 0, 0, 0), synced("pv-queued", 1, 4, 5, 3)});
    EXPECT_EQ(kick.status, Status::fail);
    EXPECT_NE(kick.reason.find("grew by 7 on the host for 8 kicks"), std::string::npos) << kick.reason;
    EXPECT_NE(kick.reason.find("contention of pv-queued/kvm, repetition 1"), std::string::npos) << kick.reason;
    EXPECT_EQ(judged_between({synced("pv-queued", 1, 5, 5, 2)}).status, Status::fail) << "a halt that KVM has not seen";
    EXPECT_EQ(judged_between({synced("pv-queued", 1, 3, 5, 2)}).status, Status::pass) << "idle vCPUs halt as well";
    EXPECT_EQ(judged_between({synced("pv-queued", 1, 4, 5, 2), synced("tas", 3, 0, 0, 0)}).status, Status::error);
    EXPECT_EQ(judged_between({synced("tas", 3, 0, 0, 0)}).status, Status::error) << "answered, and nothing was kept";
    EXPECT_EQ(judged_between({{{"type", "bench"}, {"bench", "io"}}}).status, Status::skip) << "nobody asked";
    EXPECT_EQ(judged_between({}).status, Status::skip);
}

TEST(ReportHostTable, PutsBothCountsSideBySide) {
    Results results;
    results.records = with_syncs({synced("pv-queued", 1, 4, 5, 2), synced("pv-queued", 2, 0, 0, 0),
                                  synced("byte", 1, 1, 7, 1), synced("tas", 3, 0, 0, 0)});
    results.runs.push_back({});
    const auto table = host_table(results);
    ASSERT_EQ(table.blocks.size(), 1u);
    ASSERT_EQ(table.blocks[0].rows.size(), 2u);
    const HostRow& row = table.blocks[0].rows[0];
    EXPECT_EQ(row.lock, "pv-queued/kvm");
    EXPECT_EQ(row.halts, 4u);
    EXPECT_EQ(row.halt_exits, 4u);
    EXPECT_EQ(row.kicks_and_yields, 7u);
    EXPECT_EQ(row.directed_yield_attempted, 7u);
    const std::string text = text_of(table);
    EXPECT_NE(text.find("byte/kvm"), std::string::npos) << text;
    EXPECT_NE(text.find(" -1 "), std::string::npos) << "7 yields for 8: " << text;
    EXPECT_EQ(table.problems, std::vector<std::string>{"1 measurements have no counters of the host"});
    EXPECT_FALSE(host_table({}).problems.empty());
}

} // namespace
} // namespace spinkick::report
