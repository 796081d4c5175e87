// SPDX-License-Identifier: BSD-2-Clause
#include "tools/distribution.hpp"

#include <algorithm>
#include <limits>

#include "tools/record.hpp"

namespace spinkick::report {

void Distribution::add(const Json& record) {
    ++parts_;
    const auto keep_largest = [&record](std::optional<std::uint64_t>& value, const char* key) {
        if (const auto number = number_in(record, key))
            value = std::max(value.value_or(0), *number);
    };
    keep_largest(worst_p50_, "p50_ns");
    keep_largest(worst_p90_, "p90_ns");
    keep_largest(worst_p99_, "p99_ns");
    keep_largest(worst_p999_, "p999_ns");
    keep_largest(max_, "max_ns");
    keep_largest(skew_, "skew_ns");
    count_ += number_in(record, "count").value_or(0);
    const auto buckets = record.find("buckets");
    if (buckets == record.end() || !buckets->is_array()) {
        all_have_buckets_ = false;
        return;
    }
    for (const Json& bucket : *buckets) {
        if (bucket.is_array() && bucket.size() == 2 && bucket[0].is_number_unsigned() && bucket[1].is_number_unsigned())
            buckets_[bucket[0].get<std::uint64_t>()] += bucket[1].get<std::uint64_t>();
        else
            all_have_buckets_ = false;
    }
}

std::optional<std::uint64_t> Distribution::percentile(unsigned percent) const {
    const auto worst = percent == 50 ? worst_p50_ : worst_p99_;
    if (!worst || parts_ == 1 || !all_have_buckets_)
        return worst;
    std::uint64_t total = 0;
    for (const auto& [lowest, count] : buckets_)
        total += count;
    const std::uint64_t wanted = total / 100 * percent + total % 100 * percent / 100;
    std::uint64_t seen = 0;
    for (const auto& [lowest, count] : buckets_) {
        seen += count;
        if (seen > wanted || seen == total)
            return lowest;
    }
    return std::nullopt;
}

std::vector<Distribution::Point> Distribution::cumulative() const {
    std::vector<Point> points;
    if (!has_buckets() || buckets_.empty()) {
        if (count_ == 0)
            return points;
        for (const auto& [ns, part] :
             {std::pair{worst_p50_, 0.5}, std::pair{worst_p90_, 0.9}, std::pair{worst_p99_, 0.99},
              std::pair{worst_p999_, 0.999}, std::pair{max_, 1.0}})
            if (ns)
                points.push_back({*ns, part});
        return points;
    }
    double total = 0;
    for (const auto& [lowest, count] : buckets_)
        total += static_cast<double>(count);
    double below = 0;
    points.push_back({buckets_.begin()->first, 0});
    for (const auto& [lowest, count] : buckets_) {
        below += static_cast<double>(count);
        // A bucket is at most 1/32 of its lowest value wide.
        const std::uint64_t border = lowest + (lowest + 31) / 32;
        points.push_back({std::min(border, max_.value_or(border)), below / total});
    }
    return points;
}

} // namespace spinkick::report
