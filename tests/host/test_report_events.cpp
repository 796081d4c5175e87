// SPDX-License-Identifier: BSD-2-Clause
//
// The table of event latencies: both forms beside each other, and what is missing or broken.
#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/event_table.hpp"

namespace spinkick::report {
namespace {

Json event_record(const char* form, const char* notice, const char* receiver, std::uint64_t count, std::uint64_t p50) {
    return {{"type", "event_latency"}, {"bench", "event_channels"}, {"platform", "xen-pvh"}, {"form", form},
            {"notice", notice},        {"receiver", receiver},      {"count", count},        {"p50_ns", p50},
            {"p90_ns", p50 * 2},       {"p99_ns", p50 * 3},         {"max_ns", p50 * 4}};
}

Results events(std::vector<Json> records) {
    Results results;
    results.records = std::move(records);
    results.runs.emplace_back();
    return results;
}

TEST(EventTable, PutsBothFormsBesideEachOther) {
    const auto table = event_table(events({event_record("2l", "poll", "polling", 50, 2000),
                                           event_record("2l", "callback vector", "halted", 50, 4000),
                                           event_record("fifo", "poll", "polling", 60, 3000)}));
    ASSERT_TRUE(table.problems.empty());
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(table.rows[0].two_level->p50_ns, 2000u);
    EXPECT_EQ(table.rows[0].fifo->count, 60u);
    EXPECT_EQ(table.rows[0].fifo->max_ns, 12000u);
    EXPECT_FALSE(table.rows[1].fifo);
    const std::string text = text_of(table);
    EXPECT_TRUE(sample::has(text, "1.50"));
    EXPECT_TRUE(sample::has(text, "callback vector"));
}

TEST(EventTable, TakesTheRunWithMoreEvents) {
    const auto table = event_table(
        events({event_record("2l", "poll", "polling", 50, 2000), event_record("2l", "poll", "polling", 70, 5000),
                event_record("2l", "poll", "polling", 60, 1000)}));
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(table.rows[0].two_level->p50_ns, 5000u);
}

TEST(EventTable, NamesWhatIsMissing) {
    EXPECT_TRUE(sample::has(event_table(events({})).problems.at(0), "evtchn=fifo"));
    auto broken = event_record("2l", "poll", "polling", 50, 2000);
    broken.erase("p99_ns");
    EXPECT_TRUE(sample::has(event_table(events({broken})).problems.at(0), "lacks its figures"));
    EXPECT_TRUE(
        sample::has(event_table(events({event_record("3l", "poll", "polling", 1, 1)})).problems.at(0), "\"3l\""));
}

} // namespace
} // namespace spinkick::report
