// SPDX-License-Identifier: BSD-2-Clause
//
// The histogram of one lock, from one record or merged from those of several runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tools/serial_stream.hpp"

namespace spinkick::report {

class Distribution {
  public:
    void add(const Json& record);

    [[nodiscard]] std::optional<std::uint64_t> max_ns() const noexcept { return max_; }
    /// What is known of the skew between the CPUs' clocks, at worst.
    [[nodiscard]] std::optional<std::uint64_t> skew_ns() const noexcept { return skew_; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    /// Every record had its buckets; under compact=1 none has.
    [[nodiscard]] bool has_buckets() const noexcept { return parts_ > 0 && all_have_buckets_; }
    /// Percentiles of several runs without buckets can only be bounded.
    [[nodiscard]] bool is_bounded() const noexcept { return parts_ > 1 && !all_have_buckets_; }

    /// 50 or 99: the record's own, or that of the merged buckets, or the largest of any run if is_bounded().
    [[nodiscard]] std::optional<std::uint64_t> percentile(unsigned percent) const;

    struct Point {
        std::uint64_t ns;
        double part; ///< of all values, that are at most `ns`
    };
    /// The cumulative distribution at the upper borders of the buckets, or at the percentiles that are known.
    [[nodiscard]] std::vector<Point> cumulative() const;

  private:
    int parts_ = 0;
    bool all_have_buckets_ = true;
    std::uint64_t count_ = 0;
    std::map<std::uint64_t, std::uint64_t> buckets_; ///< lowest value to count
    std::optional<std::uint64_t> worst_p50_, worst_p90_, worst_p99_, worst_p999_, max_, skew_;
};

} // namespace spinkick::report
