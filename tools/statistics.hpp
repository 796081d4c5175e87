// SPDX-License-Identifier: BSD-2-Clause
//
// What may be concluded from a handful of repetitions: a rank test that asks nothing of the distribution (lock figures
// have long tails and several modes), the correction for asking many questions at once, and the interval of a change.
//
// F. Wilcoxon, Biometrics Bulletin 1 (1945) 80; H. B. Mann and D. R. Whitney, Ann. Math. Stat. 18 (1947) 50;
// S. Holm, Scand. J. Stat. 6 (1979) 65; B. L. Welch, Biometrika 34 (1947) 28; M. Friedman, J. Am. Stat. Assoc. 32
// (1937) 675; R. L. Iman and J. M. Davenport, Comm. Stat. A9 (1980) 571.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace spinkick::report {

/// 0 of nothing.
[[nodiscard]] double mean_of(std::span<const double> values) noexcept;
/// Sample standard deviation; nothing below two values.
[[nodiscard]] std::optional<double> deviation_of(std::span<const double> values) noexcept;

struct RankSum {
    double p = 1;      ///< two-sided
    int direction = 0; ///< 1 if the second sample lies higher, -1 if lower, 0 if neither
    bool exact = true; ///< else by the normal approximation, with corrections for ties and continuity
};

/// Wilcoxon's rank-sum (Mann-Whitney) test of two independent samples. Equal values share their ranks, and the exact
/// distribution is that of the shared ranks. p is 1 if a sample is empty.
[[nodiscard]] RankSum rank_sum_test(std::span<const double> first, std::span<const double> second);

/// The smallest p that the test can give for samples of these sizes, reached when they do not overlap.
[[nodiscard]] double smallest_p(std::size_t first, std::size_t second) noexcept;
/// Values a side from which on that p is at most `alpha / family`.
[[nodiscard]] std::size_t values_needed(double alpha, std::size_t family) noexcept;

/// p after Holm's correction, in the order given: comparing each with alpha keeps the chance of one false alarm in the
/// whole family below alpha.
[[nodiscard]] std::vector<double> holm(std::span<const double> p);

struct Friedman {
    double statistic = 0; ///< Friedman's chi-squared
    double p = 1;         ///< by Iman's and Davenport's F
};

/// Do the columns of a table differ, whatever its rows are? Values are ranked inside their row; equal ones share their
/// ranks. p is 1 for fewer than two rows or columns. All rows must have the same length.
[[nodiscard]] Friedman friedman_test(std::span<const std::vector<double>> rows);

struct Interval {
    double low = 0;
    double high = 0;
};

/// Quantile of Student's t for `probability` above one half and any positive number of degrees of freedom.
[[nodiscard]] double student_t_quantile(double probability, double degrees) noexcept;

/// Confidence interval of mean(second) / mean(first), on a logarithmic scale with Welch's degrees of freedom. Nothing
/// if a sample has fewer than two values or a mean that is not positive.
[[nodiscard]] std::optional<Interval> ratio_interval(std::span<const double> first, std::span<const double> second,
                                                     double confidence = 0.95) noexcept;

} // namespace spinkick::report
