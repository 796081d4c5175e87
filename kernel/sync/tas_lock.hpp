// SPDX-License-Identifier: BSD-2-Clause
//
// Test and set, with a test before every further set (Rudolph and Segall, "Dynamic decentralized cache schemes for MIMD
// parallel processors", ISCA 1984). What a Linux guest falls back to (virt_spin_lock) when its hypervisor offers no
// kick: unfair, but it does not hand the lock to a vCPU that is not running, which is what ruins FIFO locks under
// overcommit.
//
//   word:  0 --xchg 1--> 1      lock; the exchange that returns 0 has won
//          1 --load----> 1      wait; loads share the cache line, exchanges would steal it from the holder
//          1 --store 0-> 0      unlock
//
// Orders: xchg acquires and pairs with unlock's release store, so the section of the last holder is seen by the next.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/lock_view.hpp"

namespace spinkick::sync {

template <LockMachine B>
class TasLock {
  public:
    using Machine = B;
    static constexpr const char* kName = "tas";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;
    static constexpr WordLayout kWord = WordLayout::flag;

    constexpr TasLock() noexcept = default;
    TasLock(const TasLock&) = delete;
    TasLock& operator=(const TasLock&) = delete;

    void lock() noexcept {
        if (word_.exchange(1, std::memory_order_acquire) == 0) [[likely]]
            return;
        lock_slow();
    }

    [[nodiscard]] bool try_lock() noexcept {
        // The look first keeps a failing try_lock from taking the cache line away from the holder.
        return word_.load(std::memory_order_relaxed) == 0 && word_.exchange(1, std::memory_order_acquire) == 0;
    }

    void unlock() noexcept { word_.store(0, std::memory_order_release); }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    [[gnu::noinline]] void lock_slow() noexcept {
        do {
            spin_once<B>();
        } while (!try_lock());
    }

    typename B::template Atomic<std::uint8_t> word_{0};
};

} // namespace spinkick::sync
