// SPDX-License-Identifier: BSD-2-Clause
#include "tools/cascade_table.hpp"

#include <gtest/gtest.h>

namespace spinkick::report {
namespace {

// Kinds of events, and what an early waiter of this "image" says in `halts`.
constexpr int kCascadeWants = 1, kCascadeQueued = 2, kCascadeHalts = 3, kCascadeWakes = 4, kCascadeAcquired = 5;
constexpr int kSpunOut = 15, kByState = 14, kByFlag = 17;

Json cascade_record(int cpu, const Json& events, int lost = 0) {
    return {{"type", "trace"},
            {"lock", "pv-queued"},
            {"backend", "kvm"},
            {"cpu", cpu},
            {"skew_ns", 100},
            {"wait_early", "preempted"},
            {"early_by_state", kByState},
            {"early_by_flag", kByFlag},
            {"lost", lost},
            {"kinds", {"none", "wants", "queued", "halts", "wakes", "acquired", "releases", "kicks", "kicked"}},
            {"events", events},
            {"steal", Json::array()},
            {"test", "trace.contention/pv-queued/kvm"},
            {"platform", "nested-kvm"},
            {"timing", "emulated"}};
}

/// Waits behind `before` from `at` on, and sleeps 100 ns later for 1000 ns.
Json sleeper(int at, int before, int why) {
    return {{at, kCascadeWants, 0},
            {at + 1, kCascadeQueued, before},
            {at + 100, kCascadeHalts, why},
            {at + 1100, kCascadeWakes, 1},
            {at + 1200, kCascadeAcquired, 0}};
}

CascadeRow row_of(std::vector<Json> records) {
    Results results;
    results.records = std::move(records);
    results.runs.push_back({});
    const auto table = cascade_table(results);
    EXPECT_TRUE(table.problems.empty()) << text_of(table);
    EXPECT_EQ(table.blocks.size(), 1u);
    EXPECT_EQ(table.blocks.at(0).rows.size(), 1u);
    return table.blocks.at(0).rows.at(0);
}

TEST(ReportCascade, OneThatSpunOutBeginsAChain) {
    const auto row = row_of({cascade_record(1, sleeper(0, 0, kSpunOut)), cascade_record(2, sleeper(200, 1, kByState)),
                             cascade_record(3, sleeper(400, 2, kByState))});
    EXPECT_EQ(row.sleeps, 3u);
    EXPECT_EQ(row.early, 2u);
    EXPECT_EQ(row.behind_spun, 1u);
    EXPECT_EQ(row.behind_early, 1u);
    EXPECT_EQ(row.by_flag, 0u);
    EXPECT_EQ(row.unknown, 0u);
    EXPECT_EQ(row.depths, (std::array<std::uint64_t, 5>{1, 1, 0, 0, 0}));
    EXPECT_EQ(row.deepest, 2u);
}

TEST(ReportCascade, OneByTheFlagBeginsAChainToo) {
    const auto row =
        row_of({cascade_record(1, {{0, kCascadeWants, 0}}), cascade_record(2, sleeper(200, 1, kByFlag)),
                cascade_record(3, sleeper(400, 2, kByState)), cascade_record(4, sleeper(600, 3, kByState))});
    EXPECT_EQ(row.early, 3u);
    EXPECT_EQ(row.by_flag, 1u);
    EXPECT_EQ(row.behind_early, 2u);
    EXPECT_EQ(row.depths, (std::array<std::uint64_t, 5>{1, 1, 1, 0, 0}));
}

// The node says "halted" before the event is written, and until after the vCPU is awake again.
TEST(ReportCascade, ASleepThatBeginsAMomentLaterOrIsJustOverIsMeant) {
    auto row = row_of({cascade_record(1, sleeper(50, 0, kSpunOut)), cascade_record(2, sleeper(40, 1, kByState))});
    EXPECT_EQ(row.behind_spun, 1u) << "begins 10 ns later";
    row = row_of({cascade_record(1, sleeper(50, 0, kSpunOut)), cascade_record(2, sleeper(1100, 1, kByState))});
    EXPECT_EQ(row.behind_spun, 1u) << "over for 50 ns, the lock not taken yet";
}

TEST(ReportCascade, ASleepOfAnotherAcquisitionIsNotMeant) {
    const auto row =
        row_of({cascade_record(1, sleeper(0, 0, kSpunOut)), cascade_record(2, sleeper(1500, 1, kByState))});
    EXPECT_EQ(row.early, 1u);
    EXPECT_EQ(row.unknown, 1u);
    EXPECT_EQ(row.deepest, 0u);
}

TEST(ReportCascade, LostEventsAreUnknownNotGuessed) {
    auto late = sleeper(400, 0, kSpunOut);
    const auto row = row_of({cascade_record(1, late, 7), cascade_record(2, sleeper(200, 1, kByState)),
                             cascade_record(3, sleeper(250, 2, kByState))});
    EXPECT_EQ(row.unknown, 1u);
    EXPECT_EQ(row.behind_early, 1u);
    EXPECT_EQ(row.deepest, 0u) << "of a chain whose begin is lost no depth is known";
}

TEST(ReportCascade, ACircleEnds) {
    const auto row = row_of({cascade_record(1, sleeper(0, 2, kByState)), cascade_record(2, sleeper(10, 1, kByState))});
    EXPECT_EQ(row.behind_early, 2u);
    EXPECT_EQ(row.deepest, 0u);
}

TEST(ReportCascade, ATraceWithoutEarlyWaitsIsNamedAsMissing) {
    auto record = cascade_record(1, sleeper(0, 0, kSpunOut));
    record.erase("early_by_state");
    Results results;
    results.records.push_back(record);
    results.runs.push_back({});
    const auto table = cascade_table(results);
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_NE(table.problems[0].find("tests=trace.contention"), std::string::npos) << table.problems[0];
}

} // namespace
} // namespace spinkick::report
