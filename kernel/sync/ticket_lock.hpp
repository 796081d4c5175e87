// SPDX-License-Identifier: BSD-2-Clause
//
// Ticket lock: first come, first served, like the numbers at a counter (Lamport's bakery reduced to fetch-and-add; Reed
// and Kanodia, "Synchronization with eventcounts and sequencers", CACM 1979; Linux on x86 from 2.6.25 to 4.1).
//
// One word, two halves: `tail` is the next number to give out, `head` the number being served. Equal: free.
//
//   (tail,head)
//   t,h --xadd tail+1--> t+1,h    lock; my number is t; it is my turn when h == t
//   t,h --store h+1----> t,h+1    unlock; only the holder writes head, so this is no locked instruction
//   t,t --cmpxchg------> t+1,t    try_lock; never takes a number that it would have to wait for
//
// Numbers wrap at 2^16, which is no fault as long as fewer than 2^16 CPUs wait. Tail is the upper half, so that its
// carry leaves the word.
//
// Orders: the xadd, when it finds its own number served, and the load that ends a wait acquire; they pair with the
// release store of head in unlock.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/lock_word.hpp"

namespace spinkick::sync {

template <LockMachine B>
class TicketLock {
  public:
    using Machine = B;
    static constexpr const char* kName = "ticket";
    static constexpr bool kIsFifo = true;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;
    static constexpr WordLayout kWord = WordLayout::ticket;

    static_assert(B::kMaxCpus < 1u << 16);

    constexpr TicketLock() noexcept = default;
    TicketLock(const TicketLock&) = delete;
    TicketLock& operator=(const TicketLock&) = delete;

    void lock() noexcept {
        const std::uint32_t seen = word_.whole().fetch_add(kOneTail, std::memory_order_acquire);
        const auto mine = static_cast<std::uint16_t>(seen >> kTailShift);
        if (static_cast<std::uint16_t>(seen) == mine) [[likely]]
            return;
        wait_for(mine);
    }

    [[nodiscard]] bool try_lock() noexcept {
        // relaxed: the value is only compared; the compare_exchange acquires.
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed);
        if (static_cast<std::uint16_t>(seen) != seen >> kTailShift)
            return false;
        return word_.whole().compare_exchange_strong(seen, seen + kOneTail, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
    }

    void unlock() noexcept { add_by_owner<B>(word_.head(), 1); }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    static constexpr unsigned kTailShift = 16;
    static constexpr std::uint32_t kOneTail = 1u << kTailShift;

    [[gnu::noinline]] void wait_for(std::uint16_t mine) noexcept {
        do {
            spin_once<B>();
        } while (word_.head().load(std::memory_order_acquire) != mine);
    }

    LockWord<B> word_;
};

} // namespace spinkick::sync
