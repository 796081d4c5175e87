// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "kernel/stress/fairness.hpp"

namespace spinkick::stress {
namespace {

TEST(Histogram, BucketsTileTheRange) {
    EXPECT_EQ(Histogram::lowest(0), 0u);
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
        ASSERT_EQ(Histogram::bucket_of(Histogram::lowest(i)), i);
        ASSERT_EQ(Histogram::bucket_of(Histogram::highest(i)), i);
        if (i + 1 < Histogram::kBuckets) {
            ASSERT_EQ(Histogram::highest(i) + 1, Histogram::lowest(i + 1));
        }
        if (i != 0) { // relative width
            ASSERT_LE((Histogram::highest(i) - Histogram::lowest(i)) * 32, Histogram::lowest(i));
        }
    }
    EXPECT_LE(sizeof(Histogram), 40u * 32u * 4u);
}

TEST(Histogram, PercentilesStayWithinOnePartIn32) {
    std::mt19937_64 random(11);
    std::vector<std::uint64_t> values;
    auto histogram = std::make_unique<Histogram>();
    for (int i = 0; i < 50000; ++i) {
        const std::uint64_t value = random() >> (24 + random() % 40); // all magnitudes
        values.push_back(value);
        histogram->record(value, CpuId{static_cast<std::uint32_t>(i % 4)});
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(histogram->count(), values.size());
    EXPECT_EQ(histogram->max(), values.back());
    for (const std::uint32_t p : {0u, 1u, 100u, 2500u, 5000u, 9000u, 9900u, 9990u, 9999u, 10000u, 20000u}) {
        const std::uint64_t rank = std::max<std::uint64_t>(1, (values.size() * std::min(p, 10000u) + 9999) / 10000);
        const std::uint64_t exact = values[rank - 1];
        const std::uint64_t seen = histogram->percentile(p);
        EXPECT_GE(seen, exact) << p;
        EXPECT_LE(seen, exact + exact / 32) << p;
    }
    EXPECT_EQ(histogram->percentile(10000), values.back());
}

TEST(Histogram, EmptyAndSingle) {
    Histogram histogram;
    EXPECT_EQ(histogram.percentile(5000), 0u);
    EXPECT_EQ(histogram.max(), 0u);
    histogram.record(0, CpuId{3});
    EXPECT_EQ(histogram.percentile(9990), 0u);
    EXPECT_EQ(histogram.max_cpu(), CpuId{3});
    histogram.record(1'000'000, CpuId{2});
    histogram.record(1'000'000, CpuId{1});
    EXPECT_EQ(histogram.max_cpu(), CpuId{2});
    EXPECT_EQ(histogram.percentile(10000), 1'000'000u); // not the border of its bucket
    histogram.clear();
    EXPECT_EQ(histogram.count(), 0u);
}

TEST(Histogram, TheRankIsRoundedUp) {
    Histogram histogram;
    for (const std::uint64_t value : {1u, 2u, 3u})
        histogram.record(value, CpuId{0});
    EXPECT_EQ(histogram.percentile(3333), 1u); // 0.9999 of a value
    EXPECT_EQ(histogram.percentile(3334), 2u);
    EXPECT_EQ(histogram.percentile(5000), 2u);
    EXPECT_EQ(histogram.percentile(9900), 3u);
}

TEST(Histogram, SaturatesAtTheTop) {
    Histogram histogram;
    histogram.record(Histogram::kLargest, CpuId{0});
    histogram.record(~std::uint64_t{0}, CpuId{5});
    EXPECT_EQ(histogram.max(), ~std::uint64_t{0});
    EXPECT_EQ(histogram.max_cpu(), CpuId{5});
    EXPECT_EQ(histogram.percentile(10000), ~std::uint64_t{0});
    int buckets = 0;
    histogram.for_each_bucket([&](std::uint64_t lowest, std::uint32_t count) {
        ++buckets;
        EXPECT_EQ(lowest, Histogram::lowest(Histogram::kBuckets - 1));
        EXPECT_EQ(count, 2u);
    });
    EXPECT_EQ(buckets, 1);
}

TEST(Histogram, MergeIsTheSameAsRecordingTogether) {
    std::mt19937_64 random(5);
    auto a = std::make_unique<Histogram>();
    auto b = std::make_unique<Histogram>();
    auto both = std::make_unique<Histogram>();
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t value = random() >> (20 + random() % 44);
        const CpuId cpu{static_cast<std::uint32_t>(i % 2)};
        (i % 2 == 0 ? a : b)->record(value, cpu);
        both->record(value, cpu);
    }
    a->merge(*b);
    a->merge(Histogram{});
    EXPECT_EQ(a->count(), both->count());
    EXPECT_EQ(a->max(), both->max());
    EXPECT_EQ(a->max_cpu(), both->max_cpu());
    std::vector<std::pair<std::uint64_t, std::uint32_t>> left;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> right;
    a->for_each_bucket([&](auto lowest, auto count) { left.emplace_back(lowest, count); });
    both->for_each_bucket([&](auto lowest, auto count) { right.emplace_back(lowest, count); });
    EXPECT_EQ(left, right);
    Histogram empty;
    empty.merge(*both);
    EXPECT_EQ(empty.max_cpu(), both->max_cpu());
}

TEST(Histogram, ABucketThatIsFullDoesNotWrap) {
    // Doubling by merging reaches 2^32 in 32 steps.
    auto histogram = std::make_unique<Histogram>();
    histogram->record(7, CpuId{0});
    for (int i = 0; i < 40; ++i) {
        const Histogram copy = *histogram;
        histogram->merge(copy);
    }
    histogram->record(7, CpuId{0});
    EXPECT_EQ(histogram->count(), (std::uint64_t{1} << 40) + 1);
    histogram->for_each_bucket([](auto, auto count) { EXPECT_EQ(count, 0xffffffffu); });
    EXPECT_EQ(histogram->percentile(10), 7u);
    EXPECT_EQ(histogram->percentile(9990), 7u);
}

TEST(Histogram, WorksAtCompileTime) {
    static constexpr auto kHistogram = [] {
        Histogram histogram;
        for (std::uint64_t i = 1; i <= 100; ++i)
            histogram.record(i, CpuId{0});
        return histogram;
    }();
    static_assert(kHistogram.percentile(5000) == 50);
    static_assert(kHistogram.max() == 100);
}

Fairness of(const std::vector<std::uint64_t>& acquisitions) { return fairness_of(acquisitions); }

TEST(Fairness, KnownValues) {
    EXPECT_EQ(of({100, 100, 100, 100}).jain_permille, 1000u);
    EXPECT_EQ(of({100, 100, 100, 100}).share_min_permille, 250u);
    EXPECT_EQ(of({100, 100, 100, 100}).share_max_permille, 250u);
    EXPECT_EQ(of({100, 100, 100, 100}).total, 400u);
    EXPECT_EQ(of({0, 0, 0, 1}).jain_permille, 250u);
    EXPECT_EQ(of({0, 0, 0, 1}).share_min_permille, 0u);
    EXPECT_EQ(of({0, 0, 0, 1}).share_max_permille, 1000u);
    EXPECT_EQ(of({5}).jain_permille, 1000u);
    EXPECT_EQ(of({1, 3}).jain_permille, 800u); // 16 / (2 * 10)
    EXPECT_EQ(of({1, 3}).share_min_permille, 250u);
    EXPECT_EQ(of({1, 2}).share_max_permille, 667u); // rounded up
    EXPECT_EQ(of({0, 0}).jain_permille, 0u);
    EXPECT_EQ(of({}).jain_permille, 0u);
}

TEST(Fairness, AgreesWithFloatingPointAtEverySize) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 2000; ++round) {
        const std::size_t cpus = 1 + random() % kMaxCpus;
        const unsigned bits = 8 + static_cast<unsigned>(random() % 48); // the total stays below 2^64
        std::vector<std::uint64_t> values(cpus);
        double sum = 0;
        double squares = 0;
        for (auto& value : values) {
            value = random() >> (64 - bits);
            sum += static_cast<double>(value);
            squares += static_cast<double>(value) * static_cast<double>(value);
        }
        if (sum == 0)
            continue;
        const double exact = 1000 * sum * sum / (static_cast<double>(cpus) * squares);
        const Fairness fairness = of(values);
        ASSERT_NEAR(fairness.jain_permille, exact, 1.0);
        const auto largest = static_cast<double>(*std::max_element(values.begin(), values.end()));
        ASSERT_NEAR(fairness.share_max_permille, 1000 * largest / sum, 1.1);
    }
}

TEST(Fairness, NoOverflowAtTheEdge) {
    const Fairness fairness = of(std::vector<std::uint64_t>(kMaxCpus, ~std::uint64_t{0} / kMaxCpus));
    EXPECT_EQ(fairness.jain_permille, 1000u);
    EXPECT_EQ(of({~std::uint64_t{0}, 0}).jain_permille, 500u);
}

TEST(RunTracker, LongestRunByOneCpu) {
    RunTracker tracker;
    EXPECT_EQ(tracker.longest(), 0u);
    for (const std::uint32_t cpu : {0u, 0u, 1u, 0u, 2u, 2u, 2u, 1u})
        tracker.acquired(CpuId{cpu});
    EXPECT_EQ(tracker.longest(), 3u);
}

TEST(GapTracker, CountsFromTheStartAndToTheStop) {
    GapTracker tracker;
    tracker.start({100});
    tracker.acquired({150});
    tracker.acquired({400});
    tracker.acquired({390}); // a clock that runs back is no gap
    tracker.stop({500});
    EXPECT_EQ(tracker.longest().value, 250u);
    tracker.start({1000});
    tracker.stop({9000});
    EXPECT_EQ(tracker.longest().value, 8000u);
}

} // namespace
} // namespace spinkick::stress
