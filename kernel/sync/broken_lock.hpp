// SPDX-License-Identifier: BSD-2-Clause
//
// Negative control: a lock that looks right and does not exclude. It tests the word and sets it in two steps, so two
// CPUs that look at the same moment both get in. Every exclusion test runs over it and must report it; a suite that
// passes `broken` proves nothing about the others.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/lock_view.hpp"

namespace spinkick::sync {

template <LockMachine B>
class BrokenLock {
  public:
    using Machine = B;
    static constexpr const char* kName = "broken";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = false;
    static constexpr bool kSleeps = false;
    static constexpr WordLayout kWord = WordLayout::flag;

    constexpr BrokenLock() noexcept = default;
    BrokenLock(const BrokenLock&) = delete;
    BrokenLock& operator=(const BrokenLock&) = delete;

    void lock() noexcept {
        while (!try_lock())
            B::relax();
    }

    [[nodiscard]] bool try_lock() noexcept {
        if (word_.load(std::memory_order_acquire) != 0)
            return false;
        // The fault: between the look and the store anybody may look. The hint widens the gap to some hundred cycles,
        // so that the fault shows within milliseconds on two CPUs.
        B::relax();
        word_.store(1, std::memory_order_relaxed);
        return true;
    }

    void unlock() noexcept { word_.store(0, std::memory_order_release); }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    typename B::template Atomic<std::uint8_t> word_{0};
};

} // namespace spinkick::sync
