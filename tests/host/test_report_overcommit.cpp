// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tests/host/sample_results.hpp"
#include "tools/overcommit_table.hpp"

namespace spinkick::report {
namespace {

using sample::Bench;

/// A bench record and no more.
Json record(std::uint64_t cpus, int rep, std::uint64_t per_second, const char* lock = "tas") {
    return {{"type", "bench"},
            {"bench", "contention"},
            {"lock", lock},
            {"backend", "native"},
            {"rep", rep},
            {"cpus", cpus},
            {"pcpus", 2},
            {"acquisitions_per_s", per_second},
            {"acquisitions", 1000},
            {"jain_permille", 900},
            {"halts", 0},
            {"kicks", 0},
            {"platform", "nested-kvm"},
            {"timing", "real"}};
}

Results results_with(std::vector<Json> records) {
    Results results;
    results.records = std::move(records);
    results.runs.push_back({{}, "nested-kvm", "real", Word::PASS, "", {}});
    return results;
}

TEST(Overcommit, HasThePublishedRows) {
    // ebizzy at 1x and 2x as it was published: 5609.2 (56.9) -> 6263.7 (64.7), 11.7 %; here with round numbers.
    const Results base = results_with({record(4, 0, 2000), record(4, 1, 2200), record(2, 0, 5560), record(2, 1, 5640)});
    const Results next = results_with({record(4, 0, 2600), record(4, 1, 2800), record(2, 0, 6210), record(2, 1, 6310)});
    const OvercommitTable table = overcommit_of_results(base, next, Figure::acquisitions_per_s, {});
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_DOUBLE_EQ(table.rows[0].place.overcommit().value_or(0), 1);
    EXPECT_NEAR(table.rows[0].improvement.value_or(0), 0.11786, 1e-5);
    EXPECT_NEAR(table.rows[1].improvement.value_or(0), 600.0 / 2100, 1e-9);
    EXPECT_TRUE(table.problems.empty());
    const std::string text = overcommit_text(table);
    EXPECT_TRUE(sample::has(text, "1x         2 on 2 5600    57    6260    71    +11.8")) << text;
    EXPECT_TRUE(sample::has(text, "2x         4 on 2 2100   141    2700   141    +28.6")) << text;
    EXPECT_FALSE(sample::has(text, "EMULATED"));
}

TEST(Overcommit, LessWaitingIsBetter) {
    Bench bench;
    bench.boots = 3;
    Bench slower = bench;
    slower.speed = {{"queued/native", 0.5}}; // and waits twice as long
    const OvercommitTable table = overcommit_of_results(sample::bench_results(bench), sample::bench_results(slower),
                                                        Figure::wait_p99, {"queued"});
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(table.rows[0].base.size(), 3u);
    EXPECT_LT(table.rows[0].improvement.value_or(0), -0.5);
    EXPECT_TRUE(sample::has(overcommit_text(table), "wait p99 (less is better), on nested-kvm (EMULATED"));
}

TEST(Overcommit, TwoLocksOfOneRun) {
    Bench bench;
    const Results results = sample::bench_results(bench);
    OvercommitTable table = overcommit_of_locks(results, Figure::acquisitions_per_s, "queued", "pv-queued");
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_EQ(table.rows[0].base_lock, "queued/native");
    EXPECT_EQ(table.rows[0].next_lock, "pv-queued/kvm");
    EXPECT_GT(table.rows[0].improvement.value_or(0), 0.1);

    bench.locks.emplace_back("queued", "ipi");
    table = overcommit_of_locks(sample::bench_results(bench), Figure::acquisitions_per_s, "queued", "pv-queued");
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_EQ(table.problems[0], "--lock queued: which of queued/native queued/ipi?");
}

TEST(Overcommit, GuestsAtTheSameTimeCount) {
    Bench bench;
    bench.guests = 2;
    const Results results = sample::bench_results(bench);
    const OvercommitTable table = overcommit_of_results(results, results, Figure::acquisitions_per_s, {"tas"});
    ASSERT_EQ(table.rows.size(), 1u);
    EXPECT_TRUE(sample::has(overcommit_text(table), "4x         2 x 4 on 2")) << overcommit_text(table);
}

TEST(Overcommit, NamesWhatIsMissing) {
    Json unknown = record(4, 0, 2000);
    unknown.erase("pcpus");
    const Results base = results_with({unknown, record(2, 0, 1)});
    const OvercommitTable table = overcommit_of_results(base, results_with({unknown}), Figure::acquisitions_per_s, {});
    EXPECT_TRUE(table.rows.empty());
    ASSERT_EQ(table.problems.size(), 2u);
    EXPECT_TRUE(sample::has(table.problems[0], "no pcpus"));
    EXPECT_EQ(table.problems[1],
              "patched has no acquisitions/s of tas/native (contention, 2 vCPUs on 2 host CPUs, nested-kvm)");
    Results nothing = base;
    nothing.records.clear();
    EXPECT_EQ(overcommit_of_results(nothing, nothing, Figure::acquisitions_per_s, {}).problems.size(), 1u);
}

} // namespace
} // namespace spinkick::report
