// SPDX-License-Identifier: BSD-2-Clause
//
// How evenly a lock serves the CPUs that contend for it: shares and Jain's index over the acquisitions of each CPU, the
// longest run by one CPU, the longest gap of one CPU. Integers only, results in permille.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "kernel/types.hpp"

namespace spinkick::stress {

struct Fairness {
    std::uint64_t total = 0;
    std::uint32_t share_min_permille = 0; ///< smallest share of the total, rounded down
    std::uint32_t share_max_permille = 0; ///< largest share of the total, rounded up
    /// (sum x)^2 / (n * sum x^2), rounded: 1000 is even, 1000/n is one CPU alone. 0 if nobody acquired anything.
    std::uint32_t jain_permille = 0;
};

/// `acquisitions` has one number for each CPU that contended, zeros included.
[[nodiscard]] constexpr Fairness fairness_of(std::span<const std::uint64_t> acquisitions) noexcept {
    std::uint64_t most = 0;
    for (const std::uint64_t n : acquisitions)
        most = std::max(most, n);
    if (most == 0)
        return {};

    // 16 bits a number keep every product below 2^64 for up to kMaxCpus of them:
    // sum < 2^24, 1000 * sum^2 < 2^58, n * sum of squares < 2^48. What is cut off is less than a permille's 65th part.
    const auto width = static_cast<unsigned>(std::bit_width(most));
    const unsigned shift = width > 16 ? width - 16 : 0;
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    std::uint64_t least = most >> shift;
    Fairness result;
    for (const std::uint64_t n : acquisitions) {
        const std::uint64_t x = n >> shift;
        sum += x;
        squares += x * x;
        least = std::min(least, x);
        result.total += n;
    }
    const std::uint64_t all = acquisitions.size() * squares;
    result.share_min_permille = static_cast<std::uint32_t>(1000 * least / sum);
    result.share_max_permille = static_cast<std::uint32_t>((1000 * (most >> shift) + sum - 1) / sum);
    result.jain_permille = static_cast<std::uint32_t>((1000 * sum * sum + all / 2) / all);
    return result;
}

/// Counts, inside the critical section, how often in a row the same CPU came. The lock under test protects it; a lock
/// that does not exclude gives a wrong count, nothing worse.
class RunTracker {
  public:
    constexpr void acquired(CpuId cpu) noexcept {
        run_ = run_ != 0 && cpu == last_ ? run_ + 1 : 1;
        last_ = cpu;
        longest_ = std::max(longest_, run_);
    }
    [[nodiscard]] constexpr std::uint64_t longest() const noexcept { return longest_; }

  private:
    CpuId last_{};
    std::uint64_t run_ = 0;
    std::uint64_t longest_ = 0;
};

/// The longest time that one CPU went without the lock, from its start or last acquisition to the next one or to its
/// stop: a CPU that never got it has a gap as long as the run. One tracker for each CPU, ticks of that CPU only.
class GapTracker {
  public:
    constexpr void start(Tsc now) noexcept {
        last_ = now;
        longest_ = {};
    }
    constexpr void acquired(Tsc now) noexcept {
        longest_ = std::max(longest_, now - last_);
        last_ = now;
    }
    constexpr void stop(Tsc now) noexcept { acquired(now); }
    [[nodiscard]] constexpr Tsc longest() const noexcept { return longest_; }

  private:
    Tsc last_;
    Tsc longest_;
};

} // namespace spinkick::stress
