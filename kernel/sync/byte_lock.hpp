// SPDX-License-Identifier: BSD-2-Clause
//
// The byte lock that Linux used on Xen from 2.6.27 to 3.11 (Jeremy Fitzhardinge, arch/x86/xen/spinlock.c), and the same
// on any machine that can sleep and kick. One byte says whether it is held, a count says how many sleep for it. A
// waiter spins for `byte_timeout` looks, then registers, counts itself in, and sleeps; an unlock that finds the count
// above zero kicks those who are registered for this lock. Whoever comes first has it: unfair, and without a bound on
// starvation.
//
// The word is (spinners, locked):
//
//   s,0  --xchg 1-----> s,1      lock; the exchange that returns 0 has won
//   s,1  --inc--------> s+1,1    waiter, registered and about to sleep
//   s,1  --dec--------> s-1,1    waiter, awake again; it may have won meanwhile
//   s,1  --xchg 0-----> s,0      unlock; s != 0: kick the sleepers
//
// Barrier pairs:
//   waiter: S slot; RMW spinners; RMW locked     unlock: RMW locked; L spinners; L slots
//           Of the two RMWs of `locked` one is second. If it is the unlock's, it sees the count and the slot; if it is
//           the waiter's, it finds the lock free. (Linux's first form released with a plain store and a compiler
//           barrier: the load of spinners passed it, and the waiter slept for good.)
//   unlock: R xchg locked                     -> lock: A xchg     section before, section after
//
// Nesting: an interrupt handler that waits in between puts its own lock into the slot and the old one back. A kick for
// the old one that comes meanwhile finds another lock there and is not sent; so the nested wait, when it ends, kicks
// its own CPU: the interrupted one looks again.
//
// Difference to Linux 2.6.27: all who are registered are kicked, not the first one found, which might be a vCPU that is
// interrupted and busy elsewhere (Linux changed that later).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/timed_kicks.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

template <ParavirtBackend B>
class ByteLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "byte";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;
    static constexpr WordLayout kWord = WordLayout::spinners;

    constexpr ByteLock() noexcept = default;
    ByteLock(const ByteLock&) = delete;
    ByteLock& operator=(const ByteLock&) = delete;

    void lock() noexcept {
        if (locked_.exchange(1, std::memory_order_acquire) == 0) [[likely]]
            return;
        lock_slow();
    }

    [[nodiscard]] bool try_lock() noexcept {
        // The look first keeps a failing try_lock from taking the cache line away from the holder.
        return locked_.load(std::memory_order_relaxed) == 0 && locked_.exchange(1, std::memory_order_acquire) == 0;
    }

    void unlock() noexcept {
        // seq_cst: releases, and the look at the count comes after: the first barrier pair.
        locked_.exchange(0, std::memory_order_seq_cst);
        if (spinners_.load(std::memory_order_relaxed) != 0) [[unlikely]]
            kick_waiters(this);
    }

    [[nodiscard]] std::uint64_t word() const noexcept {
        return locked_.load(std::memory_order_relaxed) | std::uint64_t{spinners_.load(std::memory_order_relaxed)} << 16;
    }

    static void reset_cpu(CpuId cpu) noexcept {
        slots_[index(cpu)].lock.store(nullptr, std::memory_order_relaxed);
        waiting_word(cpu).fetch_and(~waiting_bit(cpu), std::memory_order_relaxed);
    }

    /// Locks of this type remember nothing about any CPU. Exact when nobody waits.
    [[nodiscard]] static bool at_rest() noexcept {
        return std::all_of(slots_.begin(), slots_.end(),
                           [](const Slot& slot) { return slot.lock.load(std::memory_order_relaxed) == nullptr; }) &&
               std::all_of(waiting_.begin(), waiting_.end(),
                           [](const auto& word) { return word.load(std::memory_order_relaxed) == 0; });
    }

  private:
    /// The lock that this CPU sleeps for; nullptr: none. On a line of its own: unlocking CPUs read it.
    struct alignas(64) Slot {
        Atomic<const void*> lock{nullptr};
    };

    [[gnu::noinline]] void lock_slow() noexcept {
        for (;;) {
            // At least one look, whatever the timeout.
            std::uint64_t left = std::max<std::uint64_t>(1, tuning.byte_timeout.load(std::memory_order_relaxed));
            for (; left != 0; --left) {
                if (try_lock())
                    return;
                spin_once<B>();
            }
            if (sleep())
                return;
        }
    }

    /// One sleep; true if the lock was won on the way into it.
    bool sleep() noexcept {
        if (B::in_nmi())
            return false; // it would not be put to sleep
        const CpuId cpu = B::this_cpu();
        auto& slot = slots_[index(cpu)];
        const void* const interrupted = slot.lock.load(std::memory_order_relaxed); // written by this CPU only
        slot.lock.store(this, std::memory_order_relaxed);                          // published by the RMWs below
        waiting_word(cpu).fetch_or(waiting_bit(cpu), std::memory_order_seq_cst);
        spinners_.fetch_add(1, std::memory_order_seq_cst);
        bool won = false;
        TimedKicks<B>::wait_unless([this, &won]() noexcept {
            won = locked_.exchange(1, std::memory_order_seq_cst) == 0;
            return won;
        });
        spinners_.fetch_sub(1,
                            std::memory_order_relaxed); // too high for a moment costs a search, too low never happens
        slot.lock.store(interrupted, std::memory_order_relaxed);
        if (interrupted != nullptr)
            TimedKicks<B>::kick(cpu); // a kick of the interrupted wait may have found this lock in the slot
        else
            waiting_word(cpu).fetch_and(~waiting_bit(cpu), std::memory_order_relaxed);
        return won;
    }

    /// `lock` is compared and never followed: it was released before.
    [[gnu::noinline]] static void kick_waiters(const void* lock) noexcept {
        for (std::size_t w = 0; w < waiting_.size(); ++w) {
            for (std::uint64_t bits = waiting_[w].load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
                const std::size_t cpu = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
                if (slots_[cpu].lock.load(std::memory_order_relaxed) == lock)
                    TimedKicks<B>::kick(CpuId{static_cast<std::uint32_t>(cpu)});
            }
        }
    }

    [[nodiscard]] static Atomic<std::uint64_t>& waiting_word(CpuId cpu) noexcept { return waiting_[index(cpu) / 64]; }
    [[nodiscard]] static std::uint64_t waiting_bit(CpuId cpu) noexcept { return std::uint64_t{1} << (index(cpu) % 64); }

    inline static constinit std::array<Slot, B::kMaxCpus> slots_{};
    /// CPUs with a lock in their slot, a superset.
    inline static constinit std::array<Atomic<std::uint64_t>, (B::kMaxCpus + 63) / 64> waiting_{};

    Atomic<std::uint8_t> locked_{0};
    Atomic<std::uint16_t> spinners_{0};
};

} // namespace spinkick::sync
