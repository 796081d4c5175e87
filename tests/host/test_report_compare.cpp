// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tests/host/sample_results.hpp"
#include "tools/compare.hpp"

namespace spinkick::report {
namespace {

using sample::Bench;
using sample::bench_results;

bool any_problem(const Comparison& comparison, std::string_view what) {
    return std::any_of(comparison.problems.begin(), comparison.problems.end(),
                       [what](const std::string& problem) { return sample::has(problem, what); });
}

const ComparedFigure* find(const Comparison& comparison, std::string_view lock, Figure figure) {
    for (const ComparedFigure& compared : comparison.figures)
        if (compared.id.lock == lock && compared.id.figure == figure)
            return &compared;
    return nullptr;
}

Outcome outcome(const Comparison& comparison, std::string_view lock, Figure figure) {
    const ComparedFigure* compared = find(comparison, lock, figure);
    return compared != nullptr ? compared->outcome : Outcome::few;
}

Bench enough(std::uint32_t seed) {
    Bench bench;
    bench.repetitions = 10;
    bench.seed = seed;
    return bench;
}

std::string text(const Bench& base, const Bench& next, const CompareOptions& options = {}) {
    const Results a = bench_results(base);
    const Results b = bench_results(next);
    return comparison_text(compare(a, b, options), a, b, options);
}

TEST(Compare, ARunWithItself) {
    const Results results = bench_results(enough(1));
    const Comparison comparison = compare(results, results, {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::pass);
    EXPECT_EQ(comparison.count(Outcome::regression) + comparison.count(Outcome::improvement), 0u);
    EXPECT_TRUE(sample::has(comparison_text(comparison, results, results, {}), "differs     nothing"));
}

TEST(Compare, TwoRunsOfTheSameKernelAreNotDifferentTwentyTimesOfTwenty) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        Bench base = enough(2 * seed);
        base.spread = 0.2;
        base.slow_moments = 0.1;
        Bench next = base;
        next.seed = 2 * seed + 1;
        const Comparison comparison = compare(bench_results(base), bench_results(next), {});
        EXPECT_EQ(comparison.exit_code(), ExitCode::pass) << seed;
        EXPECT_TRUE(comparison.can_tell());
    }
}

TEST(Compare, ASlowerLockIsARegressionAndAFasterOneIsNot) {
    Bench next = enough(2);
    next.speed = {{"queued/native", 0.75}, {"pv-queued/kvm", 1.4}};
    const Comparison comparison = compare(bench_results(enough(1)), bench_results(next), {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::fail);
    EXPECT_EQ(comparison.count(Outcome::regression), 1u);
    EXPECT_EQ(comparison.count(Outcome::improvement), 1u);
    EXPECT_EQ(outcome(comparison, "queued/native", Figure::acquisitions_per_s), Outcome::regression);
    EXPECT_EQ(outcome(comparison, "pv-queued/kvm", Figure::acquisitions_per_s), Outcome::improvement);
    const ComparedFigure* slower = find(comparison, "queued/native", Figure::acquisitions_per_s);
    ASSERT_TRUE(slower != nullptr && slower->interval && slower->change);
    EXPECT_NEAR(*slower->change, -0.25, 0.05);
    EXPECT_LT(slower->interval->low, -0.25);
    EXPECT_GT(slower->interval->high, -0.25);
    EXPECT_TRUE(sample::has(text(enough(1), next), "REGRESSION: 1 of "));
}

TEST(Compare, TooFewRepetitionsAreNoVerdict) {
    Bench base;
    Bench next;
    next.seed = 2;
    next.speed = {{"queued/native", 0.1}};
    const Comparison comparison = compare(bench_results(base), bench_results(next), {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_FALSE(comparison.can_tell());
    const std::string said = text(base, next);
    EXPECT_TRUE(sample::has(said, "NO VERDICT")) << said;
    EXPECT_TRUE(sample::has(said, fmt::format("repeat={}.", values_needed(0.01, comparison.family)))) << said;
    // Asked about one figure alone, five would do.
    next.repetitions = base.repetitions = 5;
    CompareOptions one;
    one.locks = {"queued"};
    one.figures = {Figure::acquisitions_per_s};
    EXPECT_EQ(compare(bench_results(base), bench_results(next), one).exit_code(), ExitCode::fail);
    EXPECT_EQ(compare(bench_results(base), bench_results(next), {}).exit_code(), ExitCode::error);
}

TEST(Compare, ASmallChangeCountsOnlyBelowItsThreshold) {
    Bench base = enough(1);
    Bench next = enough(2);
    base.spread = next.spread = 0.002;
    next.speed = {{"queued/native", 0.97}};
    const Comparison coarse = compare(bench_results(base), bench_results(next), {});
    EXPECT_EQ(coarse.exit_code(), ExitCode::pass);
    EXPECT_EQ(outcome(coarse, "queued/native", Figure::acquisitions_per_s), Outcome::small);
    CompareOptions fine;
    fine.threshold = 0.01;
    EXPECT_EQ(compare(bench_results(base), bench_results(next), fine).exit_code(), ExitCode::fail);
}

TEST(Compare, CountsOfHaltsAreNoRegressions) {
    Results changed = bench_results(enough(2));
    for (Json& record : changed.records)
        if (record.value("lock", "") == "byte" && record.contains("kicks"))
            record["kicks"] = record["kicks"].get<std::uint64_t>() * 10;
    const Comparison comparison = compare(bench_results(enough(1)), changed, {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::pass);
    EXPECT_EQ(outcome(comparison, "byte/kvm", Figure::kicks_per_acquisition), Outcome::changed);
}

TEST(Compare, ABusyHostGivesNoVerdict) {
    // Something else ran in the second half of NEW's boot: all locks are slow there.
    Bench next = enough(2);
    next.busy = 0.4;
    Comparison comparison = compare(bench_results(next), bench_results(enough(1)), {});
    EXPECT_EQ(comparison.noise.size(), 1u);
    comparison = compare(bench_results(enough(1)), bench_results(next), {});
    ASSERT_EQ(comparison.noise.size(), 1u);
    EXPECT_TRUE(sample::has(comparison.noise[0], "NEW: all locks are fast and slow in the same repetitions"));

    // One lock is slower as well: on such a host nobody knows why.
    next.speed = {{"queued/native", 0.5}};
    comparison = compare(bench_results(enough(1)), bench_results(next), {});
    EXPECT_NE(comparison.count(Outcome::regression), 0u);
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_TRUE(sample::has(text(enough(1), next), "NO VERDICT: what got worse"));
    CompareOptions nevertheless;
    nevertheless.replicate = Replicate::repetition;
    EXPECT_EQ(compare(bench_results(enough(1)), bench_results(next), nevertheless).exit_code(), ExitCode::fail);

    // Slower from the first repetition to the last, the floor too.
    next = enough(2);
    next.speed = {{"null/native", 0.5}, {"queued/native", 0.5}};
    comparison = compare(bench_results(enough(1)), bench_results(next), {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_EQ(outcome(comparison, "null/native", Figure::acquisitions_per_s), Outcome::changed);
    ASSERT_EQ(comparison.noise.size(), 1u);
    EXPECT_TRUE(sample::has(comparison.noise[0], "null/native, which locks nothing, changed by -"));
}

TEST(Compare, WhatDidNotHappenIsNotMissing) {
    Results quiet = bench_results(enough(2));
    for (Json& record : quiet.records)
        if (record.value("lock", "") == "byte")
            record.erase("pv_kick_wake");
    const Comparison comparison = compare(bench_results(enough(1)), quiet, {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::pass);
    ASSERT_EQ(comparison.notes.size(), 1u);
    EXPECT_TRUE(sample::has(comparison.notes[0], "NEW has no kick to run of byte/kvm"));
    const ComparedFigure* wake = find(comparison, "pv-queued/kvm", Figure::kick_to_run);
    ASSERT_NE(wake, nullptr);
    EXPECT_NEAR(mean_of(wake->base), 5000, 500);
}

TEST(Compare, BootsCountOnceThereAreEnough) {
    Bench base = enough(1);
    base.boots = 12;
    base.repetitions = 3;
    base.boot_spread = 0.1;
    Bench next = base;
    next.seed = 2;
    Comparison comparison = compare(bench_results(base), bench_results(next), {});
    EXPECT_EQ(comparison.replicate, Replicate::boot);
    EXPECT_EQ(comparison.exit_code(), ExitCode::pass);
    const ComparedFigure* wait = find(comparison, "queued/native", Figure::wait_p99);
    ASSERT_NE(wait, nullptr);
    EXPECT_EQ(wait->base.size(), 12u);
    EXPECT_TRUE(wait->p);

    // Waiting longer is worse.
    next.speed = {{"queued/native", 0.4}};
    comparison = compare(bench_results(base), bench_results(next), {});
    EXPECT_EQ(outcome(comparison, "queued/native", Figure::wait_p99), Outcome::regression);

    base.boots = next.boots = 2;
    EXPECT_EQ(compare(bench_results(base), bench_results(next), {}).replicate, Replicate::repetition);
    CompareOptions by_boot;
    by_boot.replicate = Replicate::boot;
    EXPECT_FALSE(compare(bench_results(base), bench_results(next), by_boot).can_tell());
}

TEST(Compare, GuestsOfOneBootAreOneValue) {
    Bench bench = enough(1);
    bench.guests = 3;
    const Figures figures(bench_results(bench));
    const FigureId& id = figures.ids().front();
    EXPECT_EQ(id.place.guests, 3u);
    EXPECT_EQ(figures.values(id, Replicate::repetition).size(), 10u);
    EXPECT_EQ(figures.values(id, Replicate::boot).size(), 1u);
    EXPECT_DOUBLE_EQ(id.place.overcommit().value_or(0), 6);
}

TEST(Compare, MixedPlatformsAndTimesAreNamed) {
    Bench other = enough(2);
    other.platform = "tcg";
    Comparison comparison = compare(bench_results(enough(1)), bench_results(other), {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_TRUE(any_problem(comparison, "BASE ran on nested-kvm (emulated time), NEW on tcg (emulated time)"));

    other = enough(2);
    other.timing = "real";
    comparison = compare(bench_results(enough(1)), bench_results(other), {});
    EXPECT_TRUE(any_problem(comparison, "NEW on nested-kvm (real time)"));

    // What can be compared still is.
    std::vector<Results> parts;
    parts.push_back(bench_results(enough(3)));
    other.platform = "tcg";
    parts.push_back(bench_results(other));
    const Results mixed = merge(std::move(parts));
    comparison = compare(bench_results(enough(1)), mixed, {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_TRUE(comparison.can_tell());
    EXPECT_TRUE(any_problem(comparison, "compare results of one platform"));
    EXPECT_TRUE(any_problem(compare(mixed, mixed, {}), "mixed platforms or times"));
}

TEST(Compare, WhatIsMissingIsNamedAndTheRestCompared) {
    Bench fewer = enough(2);
    fewer.locks.pop_back();
    Comparison comparison = compare(bench_results(enough(1)), bench_results(fewer), {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_TRUE(any_problem(comparison, "NEW has no figures of byte/kvm"));
    EXPECT_EQ(comparison.problems.size(), 1u);
    EXPECT_TRUE(comparison.can_tell());

    Results damaged = bench_results(enough(2));
    for (Json& record : damaged.records) {
        if (record.value("lock", "") == "tas")
            record.erase("acquisitions_per_s");
        if (record.value("lock", "") == "queued")
            record.erase("p99_ns");
    }
    comparison = compare(damaged, bench_results(enough(1)), {});
    EXPECT_TRUE(any_problem(comparison, "BASE has no acquisitions/s of tas/native"));
    EXPECT_TRUE(any_problem(comparison, "BASE has no wait p99 of queued/native"));
    EXPECT_TRUE(any_problem(comparison, "no p99_ns in a histogram record"));
    EXPECT_TRUE(comparison.can_tell());

    Results nothing = bench_results(enough(1));
    nothing.records.clear();
    comparison = compare(nothing, nothing, {});
    EXPECT_EQ(comparison.exit_code(), ExitCode::error);
    EXPECT_TRUE(any_problem(comparison, "have no figures"));
}

TEST(Compare, OtherNumbersOfCpusAreOtherFigures) {
    Bench next = enough(2);
    next.cpus = 8;
    const Comparison comparison = compare(bench_results(enough(1)), bench_results(next), {});
    EXPECT_TRUE(comparison.figures.empty());
    EXPECT_TRUE(any_problem(comparison, "NEW has no figures of contention, 4 vCPUs on 2 host CPUs, nested-kvm"));
    EXPECT_EQ(comparison.problems.size(), 2u);
}

TEST(Compare, ARegressionWinsOverWhatIsMissing) {
    Bench next = enough(2);
    next.locks.pop_back();
    next.speed = {{"queued/native", 0.5}};
    EXPECT_EQ(compare(bench_results(enough(1)), bench_results(next), {}).exit_code(), ExitCode::fail);
}

TEST(Compare, WhereMeanAndRanksDisagreeItIsNoRegression) {
    Bench next = enough(2);
    next.speed = {{"queued/native", 1.3}};
    Results spiked = bench_results(next);
    bool first = true;
    for (Json& record : spiked.records)
        if (record.value("lock", "") == "queued" && record.contains("acquisitions_per_s") &&
            std::exchange(first, false))
            record["acquisitions_per_s"] = 1'000'000'000;
    Results slow = bench_results(enough(1));
    // BASE has the huge value, NEW is higher in all others.
    const Comparison comparison = compare(spiked, slow, {});
    EXPECT_EQ(comparison.count(Outcome::improvement), 0u);
}

TEST(Compare, SaysWhatDiffersAndFitsATerminal) {
    Results next = bench_results(enough(2));
    for (Json& record : next.records)
        if (record.value("type", "") == "context")
            record["spin_threshold"] = 4096;
    const Results base = bench_results(enough(1));
    const std::string said = comparison_text(compare(base, next, {}), base, next, {});
    EXPECT_TRUE(sample::has(said, "differs     spin_threshold: 32768 -> 4096\n")) << said;
    EXPECT_TRUE(sample::has(said, "EMULATED")) << said;
    std::size_t width = 0;
    for (std::size_t begin = 0; begin < said.size();) {
        const std::size_t end = said.find('\n', begin);
        width = std::max(width, end - begin);
        begin = end + 1;
    }
    EXPECT_LE(width, 130u) << said;
}

} // namespace
} // namespace spinkick::report
