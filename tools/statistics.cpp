// SPDX-License-Identifier: BSD-2-Clause
#include "tools/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace spinkick::report {
namespace {

double variance_of(std::span<const double> values) noexcept {
    const double mean = mean_of(values);
    double squares = 0;
    for (const double value : values)
        squares += (value - mean) * (value - mean);
    return squares / static_cast<double>(values.size() - 1);
}

/// Both samples in one order.
struct Ranks {
    std::vector<std::size_t> doubled; ///< twice the rank of each value, so that a shared rank is a whole number
    std::size_t second_sum = 0;       ///< of the doubled ranks of the second sample
    double ties = 0;                  ///< sum of t^3 - t over the groups of t equal values
};

Ranks rank(std::span<const double> first, std::span<const double> second) {
    struct Value {
        double value;
        bool is_second;
    };
    std::vector<Value> values;
    values.reserve(first.size() + second.size());
    for (const double value : first)
        values.push_back({value, false});
    for (const double value : second)
        values.push_back({value, true});
    std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) { return a.value < b.value; });

    Ranks ranks;
    for (std::size_t begin = 0; begin < values.size();) {
        std::size_t end = begin + 1;
        while (end < values.size() && values[end].value <= values[begin].value)
            ++end;
        const std::size_t shared = begin + end + 1; // twice the mean of begin + 1 .. end
        for (std::size_t i = begin; i < end; ++i) {
            ranks.doubled.push_back(shared);
            ranks.second_sum += values[i].is_second ? shared : 0;
        }
        const auto group = static_cast<double>(end - begin);
        ranks.ties += group * group * group - group;
        begin = end;
    }
    return ranks;
}

/// Additions that the exact distribution of a sum of `chosen` ranks would take, roughly.
std::size_t exact_work(std::size_t chosen, std::size_t all) noexcept {
    return chosen * all * chosen * (2 * all - chosen + 1);
}
constexpr std::size_t kMostExactWork = 10'000'000;

/// Chance that the sum of the ranks of `second` values, drawn from all without looking, lies at least as far from its
/// mean as `ranks.second_sum` does.
double exact_p(const Ranks& ranks, std::size_t second) {
    const std::size_t all = ranks.doubled.size();
    // The ranks that were not drawn have the complementary sum: the smaller sample is less work.
    const std::size_t chosen = std::min(second, all - second);
    const std::size_t whole = all * (all + 1);
    const std::size_t observed = chosen == second ? ranks.second_sum : whole - ranks.second_sum;
    const std::size_t mean = chosen * (all + 1);
    const std::size_t distance = observed > mean ? observed - mean : mean - observed;

    // ways[k][s]: subsets of k of the ranks looked at so far whose doubled sum is s. Counts above 2^53 are rounded,
    // each by less than 1 part in 10^15, and never subtracted.
    const std::size_t width = chosen * (2 * all - chosen + 1) + 1; // sum of the largest, doubled, and 0
    std::vector<double> ways((chosen + 1) * width, 0.0);
    ways[0] = 1;
    for (std::size_t i = 0; i < all; ++i) {
        const std::size_t rank = ranks.doubled[i];
        for (std::size_t k = std::min(i + 1, chosen); k > 0; --k) {
            double* const with = &ways[k * width];
            const double* const without = &ways[(k - 1) * width];
            for (std::size_t sum = rank; sum < width; ++sum)
                with[sum] += without[sum - rank];
        }
    }
    double total = 0;
    double far = 0;
    for (std::size_t sum = 0; sum < width; ++sum) {
        const double count = ways[chosen * width + sum];
        total += count;
        if ((sum > mean ? sum - mean : mean - sum) >= distance)
            far += count;
    }
    return std::min(1.0, far / total);
}

double normal_p(const Ranks& ranks, std::size_t second) noexcept {
    const auto all = static_cast<double>(ranks.doubled.size());
    const auto chosen = static_cast<double>(second);
    const double mean = chosen * (all + 1) / 2;
    const double variance = chosen * (all - chosen) / 12 * (all + 1 - ranks.ties / (all * (all - 1)));
    const double distance = std::abs(static_cast<double>(ranks.second_sum) / 2 - mean) - 0.5;
    return variance <= 0 || distance <= 0 ? 1.0 : std::erfc(distance / std::sqrt(2 * variance));
}

/// The continued fraction of the incomplete beta function, by Lentz's method (NIST DLMF 8.17.22).
double beta_fraction(double a, double b, double x) noexcept {
    constexpr double kTiny = 1e-300;
    constexpr int kMostSteps = 1000;
    const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
    double c = 1;
    double d = 1 / nonzero(1 - (a + b) * x / (a + 1));
    double result = d;
    for (int step = 1; step < kMostSteps; ++step) {
        const double m = step;
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / nonzero(1 + even * d);
        c = nonzero(1 + even / c);
        result *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / nonzero(1 + odd * d);
        c = nonzero(1 + odd / c);
        result *= d * c;
        if (std::abs(d * c - 1) < 1e-15)
            break;
    }
    return result;
}

/// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) noexcept {
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    // The fraction converges fast on this side of the mean only.
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

} // namespace

double mean_of(std::span<const double> values) noexcept {
    return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> deviation_of(std::span<const double> values) noexcept {
    if (values.size() < 2)
        return std::nullopt;
    return std::sqrt(variance_of(values));
}

RankSum rank_sum_test(std::span<const double> first, std::span<const double> second) {
    RankSum result;
    if (first.empty() || second.empty())
        return result;
    const Ranks ranks = rank(first, second);
    const std::size_t all = ranks.doubled.size();
    const std::size_t mean = second.size() * (all + 1);
    result.direction = ranks.second_sum > mean ? 1 : ranks.second_sum < mean ? -1 : 0;
    result.exact = exact_work(std::min(first.size(), second.size()), all) <= kMostExactWork;
    result.p = result.exact ? exact_p(ranks, second.size()) : normal_p(ranks, second.size());
    return result;
}

double smallest_p(std::size_t first, std::size_t second) noexcept {
    // 2 of the C(first + second, first) ways to divide the values are as extreme as the most extreme.
    double ways = 1;
    for (std::size_t i = 1; i <= first; ++i)
        ways *= static_cast<double>(second + i) / static_cast<double>(i);
    return std::min(1.0, 2 / ways);
}

std::size_t values_needed(double alpha, std::size_t family) noexcept {
    const double limit = alpha / static_cast<double>(std::max<std::size_t>(family, 1));
    std::size_t values = 1;
    while (smallest_p(values, values) > limit)
        ++values;
    return values;
}

std::vector<double> holm(std::span<const double> p) {
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&p](std::size_t a, std::size_t b) { return p[a] < p[b]; });
    std::vector<double> adjusted(p.size());
    double largest = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        largest = std::max(largest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
        adjusted[order[i]] = largest;
    }
    return adjusted;
}

Friedman friedman_test(std::span<const std::vector<double>> rows) {
    Friedman result;
    if (rows.size() < 2 || rows.front().size() < 2)
        return result;
    const std::size_t columns = rows.front().size();
    const auto n = static_cast<double>(rows.size());
    const auto k = static_cast<double>(columns);
    std::vector<double> sums(columns, 0.0);
    double ties = 0;
    for (const std::vector<double>& row : rows) {
        for (std::size_t column = 0; column < columns; ++column) {
            double below = 0;
            double equal = 0;
            for (const double other : row) {
                below += other < row[column] ? 1 : 0;
                equal += other < row[column] || other > row[column] ? 0 : 1;
            }
            sums[column] += below + (equal + 1) / 2;
            ties += equal * equal - 1; // over a group of t equal values this adds up to t^3 - t
        }
    }
    double squares = 0;
    for (const double sum : sums)
        squares += (sum - n * (k + 1) / 2) * (sum - n * (k + 1) / 2);
    const double scale = n * k * (k + 1) - ties / (k - 1);
    if (scale <= 0)
        return result;
    result.statistic = 12 * squares / scale;
    const double rest = n * (k - 1) - result.statistic;
    if (rest <= 1e-9 * n) {
        result.p = 0; // all rows in one order
        return result;
    }
    const double f = (n - 1) * result.statistic / rest;
    const double upper = k - 1;
    const double lower = (k - 1) * (n - 1);
    result.p = incomplete_beta(lower / 2, upper / 2, lower / (lower + upper * f));
    return result;
}

double student_t_quantile(double probability, double degrees) noexcept {
    const auto below = [degrees](double t) {
        return 1 - incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
    };
    double low = 0;
    double high = 1;
    while (below(high) < probability && high < 1e12)
        high *= 2;
    constexpr int kHalvings = 100;
    for (int i = 0; i < kHalvings; ++i) {
        const double middle = low + (high - low) / 2;
        (below(middle) < probability ? low : high) = middle;
    }
    return high;
}

std::optional<Interval> ratio_interval(std::span<const double> first, std::span<const double> second,
                                       double confidence) noexcept {
    if (first.size() < 2 || second.size() < 2)
        return std::nullopt;
    const double first_mean = mean_of(first);
    const double second_mean = mean_of(second);
    if (first_mean <= 0 || second_mean <= 0)
        return std::nullopt;
    // Variances of the logarithms of the two means, to first order.
    const double a = variance_of(first) / static_cast<double>(first.size()) / (first_mean * first_mean);
    const double b = variance_of(second) / static_cast<double>(second.size()) / (second_mean * second_mean);
    const double ratio = second_mean / first_mean;
    if (a + b <= 0)
        return Interval{ratio, ratio};
    const double degrees =
        (a + b) * (a + b) /
        (a * a / static_cast<double>(first.size() - 1) + b * b / static_cast<double>(second.size() - 1));
    const double reach = std::exp(student_t_quantile(0.5 + confidence / 2, degrees) * std::sqrt(a + b));
    return Interval{ratio / reach, ratio * reach};
}

} // namespace spinkick::report
