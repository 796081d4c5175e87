// SPDX-License-Identifier: BSD-2-Clause
//
// Log-linear histogram: every octave is cut into 32 buckets of equal width, so that any value is known to 1 part in 32
// (3.125 %). A log2 bucket would blur a 99th percentile by a factor of 2. Fixed size, integers only.
//
// One CPU records; another one may merge after the recording CPU has stopped. No atomics: the measured path stays as it
// is.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernel/types.hpp"

namespace spinkick::stress {

class Histogram {
  public:
    static constexpr unsigned kSubBucketBits = 5;
    static constexpr std::size_t kSubBuckets = std::size_t{1} << kSubBucketBits;
    /// Values up to 2^40 - 1 have buckets of their own (at 3 GHz: 6 minutes); larger ones count as the largest.
    static constexpr unsigned kValueBits = 40;
    static constexpr std::uint64_t kLargest = (std::uint64_t{1} << kValueBits) - 1;
    static constexpr std::size_t kBuckets = (kValueBits - kSubBucketBits + 1) * kSubBuckets;

    /// Buckets 0..63 hold one value each; from there on each octave has 32.
    [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) noexcept {
        const std::uint64_t v = std::min(value, kLargest);
        if (v < kSubBuckets)
            return static_cast<std::size_t>(v);
        const auto shift = static_cast<unsigned>(std::bit_width(v)) - 1 - kSubBucketBits;
        return (std::size_t{shift} << kSubBucketBits) + static_cast<std::size_t>(v >> shift);
    }
    /// Smallest value of a bucket.
    [[nodiscard]] static constexpr std::uint64_t lowest(std::size_t bucket) noexcept {
        if (bucket < 2 * kSubBuckets)
            return bucket;
        const std::size_t shift = (bucket >> kSubBucketBits) - 1;
        return std::uint64_t{(bucket & (kSubBuckets - 1)) + kSubBuckets} << shift;
    }
    /// Largest value of a bucket.
    [[nodiscard]] static constexpr std::uint64_t highest(std::size_t bucket) noexcept { return lowest(bucket + 1) - 1; }

    constexpr void record(std::uint64_t value, CpuId cpu) noexcept {
        std::uint32_t& bucket = buckets_[bucket_of(value)];
        if (bucket != std::numeric_limits<std::uint32_t>::max())
            ++bucket;
        ++count_;
        if (value > max_ || count_ == 1) {
            max_ = value;
            max_cpu_ = cpu;
        }
    }

    constexpr void merge(const Histogram& other) noexcept {
        for (std::size_t i = 0; i < kBuckets; ++i) {
            const std::uint64_t sum = std::uint64_t{buckets_[i]} + other.buckets_[i];
            buckets_[i] =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, std::numeric_limits<std::uint32_t>::max()));
        }
        if (other.count_ != 0 && (other.max_ > max_ || count_ == 0)) {
            max_ = other.max_;
            max_cpu_ = other.max_cpu_;
        }
        count_ += other.count_;
    }

    constexpr void clear() noexcept {
        buckets_.fill(0); // in place: a temporary of 5 KB is a third of a stack
        count_ = 0;
        max_ = 0;
        max_cpu_ = CpuId{};
    }

    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return count_; }
    /// The exact largest value, also beyond kLargest; 0 if nothing was recorded.
    [[nodiscard]] constexpr std::uint64_t max() const noexcept { return max_; }
    /// The CPU that recorded it first.
    [[nodiscard]] constexpr CpuId max_cpu() const noexcept { return max_cpu_; }

    /// The smallest bucket border that at least `per_10000` of 10,000 values do not exceed: 5000 is the median, 9990 is
    /// p99.9. At most 1/32 above the true value and never above max(). 0 if nothing was recorded.
    [[nodiscard]] constexpr std::uint64_t percentile(std::uint32_t per_10000) const noexcept {
        if (count_ == 0)
            return 0;
        const std::uint64_t part = std::min<std::uint64_t>(per_10000, 10'000);
        // ceil(count * part / 10000) without the product, which could overflow.
        const std::uint64_t rank =
            std::max<std::uint64_t>(1, count_ / 10'000 * part + (count_ % 10'000 * part + 9'999) / 10'000);
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < kBuckets; ++i) {
            below += buckets_[i];
            if (below >= rank)
                return i + 1 == kBuckets ? max_ : std::min(highest(i), max_);
        }
        return max_; // buckets that are full count less than count() does
    }

    /// Calls `visit(lowest value, count)` for every bucket that is not empty, from the smallest on.
    template <class Visit>
    constexpr void for_each_bucket(Visit visit) const noexcept {
        for (std::size_t i = 0; i < kBuckets; ++i)
            if (buckets_[i] != 0)
                visit(lowest(i), buckets_[i]);
    }

  private:
    std::array<std::uint32_t, kBuckets> buckets_{};
    std::uint64_t count_ = 0;
    std::uint64_t max_ = 0;
    CpuId max_cpu_{};
};

static_assert(Histogram::bucket_of(Histogram::kLargest) == Histogram::kBuckets - 1);
static_assert(Histogram::bucket_of(~std::uint64_t{0}) == Histogram::kBuckets - 1);
static_assert(Histogram::highest(Histogram::kBuckets - 1) == Histogram::kLargest);

} // namespace spinkick::stress
