// SPDX-License-Identifier: BSD-2-Clause
//
// How long waiters slept, as a histogram that is small enough to be kept for every CPU all the time: one bucket for
// each power of two TSC ticks. Coarse, and enough to tell a wake-up that took microseconds from one that took the time
// slice of a stranger; the log-linear histograms of the benchmarks are for figures.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace spinkick::sync {

struct BlockedTimes {
    /// Bucket 0 holds 0, bucket n the values of n bits; the last one also whatever is longer (at 3 GHz: 6 hours).
    static constexpr std::size_t kBuckets = 48;
    static_assert(kBuckets * sizeof(std::uint64_t) <= 512, "per CPU");

    [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t ticks) noexcept {
        return std::min(static_cast<std::size_t>(std::bit_width(ticks)), kBuckets - 1);
    }
    /// Smallest and largest value of a bucket.
    [[nodiscard]] static constexpr std::uint64_t lowest(std::size_t bucket) noexcept {
        return bucket == 0 ? 0 : std::uint64_t{1} << (bucket - 1);
    }
    [[nodiscard]] static constexpr std::uint64_t highest(std::size_t bucket) noexcept {
        return (std::uint64_t{1} << bucket) - 1;
    }

    std::array<std::uint64_t, kBuckets> buckets{};

    [[nodiscard]] constexpr std::uint64_t count() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t n : buckets)
            sum += n;
        return sum;
    }
    /// The upper border of the bucket that at least `per_10000` of 10,000 waits do not exceed: up to twice the true
    /// value. 10'000: of the longest wait. 0 if nobody has slept.
    [[nodiscard]] constexpr std::uint64_t percentile(std::uint32_t per_10000) const noexcept {
        const std::uint64_t all = count();
        if (all == 0)
            return 0;
        // ceil(all * part / 10000) without the product, which could overflow.
        const std::uint64_t part = std::min<std::uint64_t>(per_10000, 10'000);
        const std::uint64_t rank =
            std::max<std::uint64_t>(1, all / 10'000 * part + (all % 10'000 * part + 9'999) / 10'000);
        std::uint64_t below = 0;
        for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
            below += buckets[bucket];
            if (below >= rank)
                return highest(bucket);
        }
        return highest(kBuckets - 1);
    }
};

static_assert(BlockedTimes::bucket_of(0) == 0 && BlockedTimes::bucket_of(1) == 1 && BlockedTimes::bucket_of(2) == 2);
static_assert(BlockedTimes::bucket_of(~std::uint64_t{0}) == BlockedTimes::kBuckets - 1);
static_assert(BlockedTimes::bucket_of(BlockedTimes::highest(20)) == 20 &&
              BlockedTimes::bucket_of(BlockedTimes::lowest(20)) == 20);

} // namespace spinkick::sync
