// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/host/sample_results.hpp"
#include "tools/statistics.hpp"

namespace spinkick::report {
namespace {

using Values = std::vector<double>;

/// The rank test by its definition: every way to divide the values among the two samples.
double p_by_enumeration(const Values& first, const Values& second) {
    Values all = first;
    all.insert(all.end(), second.begin(), second.end());
    const auto rank_of = [&all](double value) {
        double below = 0;
        double equal = 0;
        for (const double other : all) {
            below += other < value ? 1 : 0;
            equal += other < value || other > value ? 0 : 1;
        }
        return below + (equal + 1) / 2;
    };
    const double mean = static_cast<double>(second.size()) * static_cast<double>(all.size() + 1) / 2;
    double observed = 0;
    for (const double value : second)
        observed += rank_of(value);
    double far = 0;
    double ways = 0;
    for (std::uint32_t subset = 0; subset < (1u << all.size()); ++subset) {
        if (static_cast<std::size_t>(std::popcount(subset)) != second.size())
            continue;
        double sum = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((subset >> i & 1) != 0)
                sum += rank_of(all[i]);
        ++ways;
        far += std::abs(sum - mean) >= std::abs(observed - mean) - 1e-9 ? 1 : 0;
    }
    return far / ways;
}

TEST(RankSum, SamplesThatDoNotOverlap) {
    EXPECT_DOUBLE_EQ(rank_sum_test(Values{1, 2, 3}, Values{4, 5, 6}).p, 2.0 / 20);
    EXPECT_EQ(rank_sum_test(Values{1, 2, 3}, Values{4, 5, 6}).direction, 1);
    EXPECT_EQ(rank_sum_test(Values{4, 5, 6}, Values{1, 2, 3}).direction, -1);
    EXPECT_DOUBLE_EQ(rank_sum_test(Values{1, 2, 3, 4, 5}, Values{9, 8, 7, 6}).p, 2.0 / 126);
}

TEST(RankSum, TheExampleOfHollanderAndWolfe) {
    // Permeability of the chorioamnion (1973, p. 69): W = 35, one-sided p 0.1272.
    const Values term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    const Values early{1.15, 0.88, 0.90, 0.74, 1.21};
    const RankSum test = rank_sum_test(term, early);
    EXPECT_NEAR(test.p, 2 * 0.1272, 1e-4);
    EXPECT_TRUE(test.exact);
    EXPECT_EQ(test.direction, -1);
}

TEST(RankSum, EqualsTheEnumerationWithTiesAndUnequalSizes) {
    sample::Normal normal(7);
    for (std::size_t first = 1; first <= 6; ++first)
        for (std::size_t second = 1; second <= 7; ++second)
            for (const double levels : {2.0, 4.0, 1000.0}) {
                Values a(first);
                Values b(second);
                for (double& value : a)
                    value = std::floor(levels * normal.uniform());
                for (double& value : b)
                    value = std::floor(levels * normal.uniform()) + levels / 4;
                EXPECT_NEAR(rank_sum_test(a, b).p, p_by_enumeration(a, b), 1e-12) << first << " " << second;
            }
}

TEST(RankSum, SaysNothingWhereNothingDiffers) {
    EXPECT_DOUBLE_EQ(rank_sum_test(Values{5, 5, 5, 5}, Values{5, 5, 5, 5}).p, 1);
    EXPECT_DOUBLE_EQ(rank_sum_test(Values{}, Values{1, 2}).p, 1);
    EXPECT_EQ(rank_sum_test(Values{1, 4}, Values{2, 3}).direction, 0);
}

TEST(RankSum, LargeSamplesGoOnWhereSmallOnesEnd) {
    const auto p_for = [](std::size_t size, bool& exact) {
        Values a(size);
        Values b(size);
        for (std::size_t i = 0; i < size; ++i) {
            a[i] = static_cast<double>(i);
            b[i] = a[i] + 5.5;
        }
        const RankSum test = rank_sum_test(a, b);
        exact = test.exact;
        return test.p;
    };
    std::size_t size = 20;
    bool exact = true;
    double before = 1;
    for (; exact && size < 100; ++size)
        if (const double p = p_for(size, exact); exact)
            before = p;
    ASSERT_LT(size, 100u);
    const double after = p_for(size, exact);
    EXPECT_FALSE(exact);
    EXPECT_NEAR(after / before, 1, 0.15);
    Values ones(200, 1.0);
    EXPECT_DOUBLE_EQ(rank_sum_test(ones, ones).p, 1);
}

TEST(RankSum, CallsEqualDistributionsDifferentOnceInAHundredTimes) {
    sample::Normal normal(2026);
    for (const double levels : {1e9, 6.0}) { // nearly no ties, and many
        int called_different = 0;
        constexpr int kComparisons = 2000;
        for (int i = 0; i < kComparisons; ++i) {
            Values a(8);
            Values b(9);
            for (Values* values : {&a, &b})
                for (double& value : *values)
                    value = std::round(levels * std::exp(0.4 * normal()) * (normal.uniform() < 0.1 ? 3 : 1));
            called_different += rank_sum_test(a, b).p <= 0.01 ? 1 : 0;
        }
        EXPECT_LE(called_different, 30) << levels; // 20 expected at most, 4.5 their standard deviation
        EXPECT_GE(called_different, 4) << levels;  // else it could never tell anything
    }
}

TEST(RankSum, SeesADifference) {
    sample::Normal normal(3);
    int seen = 0;
    for (int i = 0; i < 100; ++i) {
        Values a(10);
        Values b(10);
        for (std::size_t k = 0; k < a.size(); ++k) {
            a[k] = std::exp(0.05 * normal());
            b[k] = 0.8 * std::exp(0.05 * normal());
        }
        seen += rank_sum_test(a, b).p < 0.001 ? 1 : 0;
    }
    EXPECT_EQ(seen, 100);
}

TEST(SmallestP, IsWhatTheTestGivesAtBest) {
    EXPECT_DOUBLE_EQ(smallest_p(3, 3), 0.1);
    EXPECT_DOUBLE_EQ(smallest_p(5, 4), 2.0 / 126);
    EXPECT_DOUBLE_EQ(smallest_p(1, 1), 1);
    EXPECT_EQ(values_needed(0.01, 1), 5u);  // 2 / 252
    EXPECT_EQ(values_needed(0.01, 32), 8u); // 2 / 12870; 7 give 2 / 3432
    EXPECT_EQ(values_needed(0.01, 0), 5u);
}

TEST(Holm, ByHand) {
    const auto p = holm(Values{0.01, 0.04, 0.03, 0.005});
    ASSERT_EQ(p.size(), 4u);
    EXPECT_NEAR(p[0], 0.03, 1e-12);
    EXPECT_NEAR(p[1], 0.06, 1e-12); // its own 0.04 would stand before a smaller one
    EXPECT_NEAR(p[2], 0.06, 1e-12);
    EXPECT_NEAR(p[3], 0.02, 1e-12);
    EXPECT_DOUBLE_EQ(holm(Values{0.7, 0.9})[0], 1);
    EXPECT_TRUE(holm(Values{}).empty());
}

TEST(Friedman, TheExampleOfHollanderAndWolfe) {
    // Three ways to round first base, 22 runners (1973, p. 140); with its ties chi-squared is 11.143.
    const std::vector<Values> times{{5.40, 5.50, 5.55}, {5.85, 5.70, 5.75}, {5.20, 5.60, 5.50}, {5.55, 5.50, 5.40},
                                    {5.90, 5.85, 5.70}, {5.45, 5.55, 5.60}, {5.40, 5.40, 5.35}, {5.45, 5.50, 5.35},
                                    {5.25, 5.15, 5.00}, {5.85, 5.80, 5.70}, {5.25, 5.20, 5.10}, {5.65, 5.55, 5.45},
                                    {5.60, 5.35, 5.45}, {5.05, 5.00, 4.95}, {5.50, 5.50, 5.40}, {5.45, 5.55, 5.50},
                                    {5.55, 5.55, 5.35}, {5.45, 5.50, 5.55}, {5.50, 5.45, 5.25}, {5.65, 5.60, 5.40},
                                    {5.70, 5.65, 5.55}, {6.30, 6.30, 6.25}};
    const Friedman test = friedman_test(times);
    EXPECT_NEAR(test.statistic, 11.143, 0.001);
    EXPECT_NEAR(test.p, 0.0038, 0.002); // chi-squared's own p is 0.0038; F's is a little smaller
}

TEST(Friedman, EdgesAndRate) {
    EXPECT_DOUBLE_EQ(friedman_test(std::vector<Values>{{1, 2, 3}}).p, 1);
    EXPECT_DOUBLE_EQ(friedman_test(std::vector<Values>{{1, 1}, {2, 2}}).p, 1);
    EXPECT_LT(friedman_test(std::vector<Values>(8, Values{1, 2, 3})).p, 1e-6);
    sample::Normal normal(5);
    int called = 0;
    for (int i = 0; i < 2000; ++i) {
        std::vector<Values> rows(6, Values(8));
        for (std::size_t row = 0; row < rows.size(); ++row)
            for (double& value : rows[row])
                value = static_cast<double>(row) + std::exp(normal());
        called += friedman_test(rows).p <= 0.01 ? 1 : 0;
    }
    EXPECT_GE(called, 4);
    EXPECT_LE(called, 34);
}

TEST(StudentT, PublishedQuantiles) {
    EXPECT_NEAR(student_t_quantile(0.975, 1), 12.706, 0.001);
    EXPECT_NEAR(student_t_quantile(0.975, 2), 4.303, 0.001);
    EXPECT_NEAR(student_t_quantile(0.975, 4), 2.776, 0.001);
    EXPECT_NEAR(student_t_quantile(0.975, 30), 2.042, 0.001);
    EXPECT_NEAR(student_t_quantile(0.995, 10), 3.169, 0.001);
    EXPECT_NEAR(student_t_quantile(0.975, 1e6), 1.960, 0.001);
}

TEST(RatioInterval, ByHand) {
    // Means 2 and 4, variances 1 and 4: both logarithms have variance 1/12, Welch's degrees are 4, t is 2.7764.
    const auto interval = ratio_interval(Values{1, 2, 3}, Values{2, 4, 6});
    ASSERT_TRUE(interval);
    const double reach = std::exp(2.77645 * std::sqrt(1.0 / 6));
    EXPECT_NEAR(interval->low, 2 / reach, 1e-4);
    EXPECT_NEAR(interval->high, 2 * reach, 1e-3);
    EXPECT_FALSE(ratio_interval(Values{1}, Values{2, 4, 6}));
    EXPECT_FALSE(ratio_interval(Values{0, 0}, Values{2, 4}));
    const auto exact = ratio_interval(Values{2, 2}, Values{3, 3});
    ASSERT_TRUE(exact);
    EXPECT_DOUBLE_EQ(exact->low, 1.5);
}

TEST(RatioInterval, HoldsTheTruthNineteenTimesInTwenty) {
    sample::Normal normal(11);
    int missed = 0;
    for (int i = 0; i < 1000; ++i) {
        Values a(6);
        Values b(9);
        for (double& value : a)
            value = 100 + 10 * normal();
        for (double& value : b)
            value = 90 + 20 * normal();
        const auto interval = ratio_interval(a, b);
        missed += interval && interval->low <= 0.9 && interval->high >= 0.9 ? 0 : 1;
    }
    EXPECT_GE(missed, 30);
    EXPECT_LE(missed, 75);
}

TEST(Deviation, OfASample) {
    EXPECT_DOUBLE_EQ(deviation_of(Values{1000, 3000}).value_or(0), std::sqrt(2.0) * 1000);
    EXPECT_FALSE(deviation_of(Values{1}));
    EXPECT_DOUBLE_EQ(mean_of(Values{}), 0);
}

} // namespace
} // namespace spinkick::report
