// SPDX-License-Identifier: BSD-2-Clause
#include "tools/trace.hpp"

#include <gtest/gtest.h>

#include "tests/host/trace_rules.hpp"

namespace spinkick::report {
namespace {

Json record(int cpu, const Json& events, const Json& steal = Json::array(), int lost = 0) {
    return {{"type", "trace"},
            {"lock", "pv-queued"},
            {"backend", "kvm"},
            {"cpu", cpu},
            {"skew_ns", 100},
            {"lost", lost},
            {"kinds", {"none", "wants", "queued", "halts", "wakes", "acquired", "releases", "kicks", "kicked"}},
            {"events", events},
            {"steal", steal},
            {"test", "trace.contention/pv-queued/kvm"},
            {"platform", "nested-kvm"},
            {"timing", "emulated"}};
}
constexpr int kWants = 1, kQueued = 2, kHalts = 3, kWakes = 4, kAcquired = 5, kReleases = 6, kKicks = 7, kKicked = 8;
constexpr int kLock = 0x1000;

Results with(std::vector<Json> records) {
    Results results;
    results.records = std::move(records);
    results.runs.push_back({});
    return results;
}

/// CPU 0 holds, CPU 1 sleeps for the lock, is kicked and gets it.
std::vector<Json> hand_over() {
    return {record(0,
                   {{0, kWants, kLock},
                    {10, kAcquired, kLock},
                    {5000, kReleases, kLock},
                    {5100, kKicks, 1},
                    {5600, kKicked, 1}},
                   {{10, 0}, {4000, 700}}),
            record(1, {{1000, kWants, kLock},
                       {1050, kQueued, 0},
                       {3000, kHalts, 14},
                       {6000, kWakes, 1},
                       {6200, kAcquired, kLock},
                       {7000, kReleases, kLock}})};
}

std::string breaches(const TraceFacts& facts) { return fmt::format("{}", fmt::join(facts.breaches, "\n")); }

TEST(ReportTrace, NothingTracedIsNoFile) { EXPECT_TRUE(trace_of(with({{{"type", "context"}}})).is_null()); }

TEST(ReportTrace, AHandOverHasItsSlicesArrowsAndCounters) {
    const auto facts = check_trace(trace_of(with(hand_over())));
    EXPECT_TRUE(facts.breaches.empty()) << breaches(facts);
    EXPECT_EQ(facts.tracks.size(), 2u);
    EXPECT_EQ(facts.slices.at("hold"), 2u);
    EXPECT_EQ(facts.slices.at("halt"), 1u);
    EXPECT_EQ(facts.slices.at("spin"), 3u); // CPU 0's, and CPU 1's before and after its sleep
    EXPECT_EQ(facts.slices.at("kick"), 1u);
    EXPECT_EQ(facts.arrows.at("handoff"), 1u);
    EXPECT_EQ(facts.arrows.at("kick"), 1u);
    EXPECT_EQ(facts.counters, 2u);
}

TEST(ReportTrace, TimesAndNamesAreThoseOfTheRecord) {
    const auto file = trace_of(with(hand_over()));
    bool seen = false;
    for (const auto& event : file.at("traceEvents"))
        if (event.at("name") == "halt") {
            EXPECT_DOUBLE_EQ(event.at("ts").get<double>(), 3.0);
            EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 3.0);
            EXPECT_EQ(event.at("tid"), 1);
            seen = true;
        }
    EXPECT_TRUE(seen);
    EXPECT_NE(file.dump().find("pv-queued/kvm (nested-kvm, emulated)"), std::string::npos);
}

TEST(ReportTrace, WhatTheRingHasLostIsNotDrawn) {
    // CPU 0's ring begins in the middle of a hold; nothing is known of who held the lock before CPU 1.
    const auto facts =
        check_trace(trace_of(with({record(0, {{5000, kReleases, kLock}, {5100, kKicked, 1}}, Json::array(), 40),
                                   record(1, {{1000, kAcquired, kLock}, {1100, kReleases, kLock}})})));
    EXPECT_TRUE(facts.breaches.empty()) << breaches(facts);
    EXPECT_FALSE(facts.slices.contains("kick"));
    EXPECT_EQ(facts.slices.at("hold"), 1u);
    EXPECT_TRUE(facts.arrows.empty());
}

TEST(ReportTrace, TwoRunsAreTwoProcesses) {
    auto records = hand_over();
    auto more = hand_over();
    for (auto& item : records)
        item["run"] = 1u;
    for (auto& item : more)
        item["run"] = 2u, records.push_back(item);
    const auto facts = check_trace(trace_of(with(records)));
    EXPECT_TRUE(facts.breaches.empty()) << breaches(facts);
    EXPECT_EQ(facts.tracks.size(), 4u);
}

TEST(ReportTrace, ABrokenRecordCostsItselfOnly) {
    auto records = hand_over();
    records.push_back(record(2, {{1, 99, 0}}));                    // a kind that does not exist
    records.push_back({{"type", "trace"}, {"lock", "tas"}});       // half of it
    records.push_back(record(3, Json::array({Json::array({1})}))); // a cut event
    records.push_back(record(-1, {{1, kWants, kLock}}));           // no CPU
    records.push_back(record(4, {{6.6e98, kWants, kLock}}));       // no time
    const auto file = trace_of(with(records));
    EXPECT_EQ(file.at("otherData").at("unreadable_records"), 5);
    EXPECT_TRUE(check_trace(file).breaches.empty());
    EXPECT_EQ(check_trace(file).tracks.size(), 2u);
}

TEST(ReportTrace, TheRulesFindEveryBreach) {
    const auto good = trace_of(with(hand_over()));
    const auto broken = [&good](auto&& damage) {
        auto file = good;
        for (auto& event : file["traceEvents"])
            damage(event);
        return !check_trace(file).breaches.empty();
    };
    EXPECT_TRUE(broken([](Json& e) { e.erase("ts"); }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["ph"] == "X")
            e["dur"] = -1;
    }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["ph"] == "f")
            e["id"] = 77;
    }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["ph"] == "f")
            e.erase("bp");
    }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["ph"] == "s")
            e["ts"] = 9e9;
    }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["name"] == "halt")
            e["dur"] = 3.1;
    }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["ph"] == "C")
            e["args"] = {{"steal_ns", "many"}};
    }));
    EXPECT_TRUE(broken([](Json& e) {
        if (e["name"] == "thread_name")
            e["args"]["name"] = "";
    }));
    EXPECT_FALSE(check_trace(Json::object()).breaches.empty());
}

} // namespace
} // namespace spinkick::report
