// SPDX-License-Identifier: BSD-2-Clause
//
// Paravirtual ticket lock, as Linux had it on KVM and Xen from 3.11 to 4.1 (Jeremy Fitzhardinge, "Prevent guests from
// spinning around", Xen Summit 2008; Raghavendra K T), in the form of 4.0 with the flag in the head. Read
// ticket_lock.hpp first. There, a preempted vCPU whose number has come stops everybody, and all others burn their time;
// here, a waiter that has spun for long enough publishes (lock, number), sets a flag in the word and sleeps; an unlock
// that finds the flag looks for the one that waits for the next number, and kicks it.
//
// Numbers are even, so that bit 0 of head is free for the flag F. The word is (tail, head):
//
//   t,h   --xadd tail+2----> t+2,h       lock; my number is t; it is my turn when h == t but for F
//   t,h   --or F-----------> t,h|F       waiter, about to sleep: whoever unlocks must look for sleepers
//   t,h*  --xadd head+2----> t,h*+2      unlock; one locked instruction; F found: kick the waiter for h+2
//   h+2,h|F --cmpxchg------> h+2,h       lock, arrived and nobody behind: no sleepers left, drop F
//   t,t*  --cmpxchg--------> t+2,t*      try_lock
//
// The unlock takes F from the value that its own xadd returns and touches the lock no more. In the first form (to 3.19)
// F was in tail: the lock was released first and its word read afterwards, when it might belong to somebody else.
//
// Barrier pairs:
//   waiter: S (lock, number); RMW F; L head     unlock: RMW head; L F (same RMW); L (lock, number)
//           Both RMWs are on head, so one is second. If it is the unlock, it finds F and the slot; if it is the waiter,
//           its look at head finds the new number and it does not sleep.
//   unlock: R xadd head                      -> lock: A xadd, or A load of head     section before, section after
//
// Difference to Linux: a waiter that is interrupted by a waiter keeps its own slot (there are four per CPU, as with
// queue nodes). Linux has one, overwritten by the handler and then empty, which is sound only if every handler ends the
// sleep of the code that it interrupts.
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
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/timed_kicks.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

template <ParavirtBackend B>
class PvTicketLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "pv-ticket";
    static constexpr bool kIsFifo = true;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;
    static constexpr WordLayout kWord = WordLayout::pv_ticket;

    static_assert(B::kMaxCpus < 1u << 15, "two numbers per CPU and 16 bits");

    constexpr PvTicketLock() noexcept = default;
    PvTicketLock(const PvTicketLock&) = delete;
    PvTicketLock& operator=(const PvTicketLock&) = delete;

    void lock() noexcept {
        const std::uint32_t seen = word_.whole().fetch_add(kOneTail, std::memory_order_acquire);
        const auto mine = static_cast<std::uint16_t>(seen >> kTailShift);
        // With F set the two differ even if the number is served: the slow path drops F.
        if (static_cast<std::uint16_t>(seen) == mine) [[likely]]
            return;
        lock_slow(mine);
    }

    [[nodiscard]] bool try_lock() noexcept {
        // relaxed: the value is only compared; the compare_exchange acquires.
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed);
        if (!is_turn(static_cast<std::uint16_t>(seen), static_cast<std::uint16_t>(seen >> kTailShift)))
            return false;
        return word_.whole().compare_exchange_strong(seen, seen + kOneTail, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
    }

    void unlock() noexcept {
        // seq_cst: releases, and the search for sleepers comes after.
        const std::uint16_t head = word_.head().fetch_add(kOne, std::memory_order_seq_cst);
        if ((head & kSleepers) != 0) [[unlikely]]
            kick_waiter(this, static_cast<std::uint16_t>((head & ~kSleepers) + kOne));
    }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }

    static void reset_cpu(CpuId cpu) noexcept {
        auto& slots = cpus_[index(cpu)].slots;
        for (Slot& slot : slots)
            slot.lock.store(nullptr, std::memory_order_relaxed);
        slots[0].depth = 0;
        waiting_word(cpu).fetch_and(~waiting_bit(cpu), std::memory_order_relaxed);
    }

    /// Locks of this type remember nothing about any CPU: no waiter, no leak. Exact when nobody waits.
    [[nodiscard]] static bool at_rest() noexcept {
        const auto free = [](const PerCpu& cpu) {
            return cpu.slots[0].depth == 0 && std::all_of(cpu.slots.begin(), cpu.slots.end(), [](const Slot& slot) {
                       return slot.lock.load(std::memory_order_relaxed) == nullptr;
                   });
        };
        return std::all_of(cpus_.begin(), cpus_.end(), free) &&
               std::all_of(waiting_.begin(), waiting_.end(),
                           [](const auto& word) { return word.load(std::memory_order_relaxed) == 0; });
    }

  private:
    static constexpr unsigned kTailShift = 16;
    static constexpr std::uint16_t kSleepers = 1; ///< F
    static constexpr std::uint16_t kOne = 2;
    static constexpr std::uint32_t kOneTail = std::uint32_t{kOne} << kTailShift;

    /// What one waiter waits for. lock == nullptr: nothing.
    struct Slot {
        Atomic<const void*> lock{nullptr};
        Atomic<std::uint16_t> number{0};
        std::uint16_t depth = 0; ///< slot 0 only: how many slots of this CPU are taken
    };
    struct alignas(64) PerCpu {
        std::array<Slot, 4> slots{};
    };
    static_assert(sizeof(PerCpu) == 64);

    [[nodiscard]] static bool is_turn(std::uint16_t head, std::uint16_t number) noexcept {
        return ((head ^ number) & ~kSleepers) == 0;
    }

    [[gnu::noinline]] void lock_slow(std::uint16_t mine) noexcept {
        for (;;) {
            // At least one look, whatever the threshold.
            std::uint64_t left = std::max<std::uint64_t>(1, tuning.spin_threshold.load(std::memory_order_relaxed));
            for (; left != 0; --left) {
                const std::uint16_t head = word_.head().load(std::memory_order_acquire);
                if (is_turn(head, mine)) {
                    if ((head & kSleepers) != 0)
                        drop_flag(mine);
                    return;
                }
                spin_once<B>();
            }
            sleep_until_turn(mine);
        }
    }

    /// mine+2,mine|F -> mine+2,mine. Fails if somebody is behind: then one of those drops it.
    void drop_flag(std::uint16_t mine) noexcept {
        const std::uint32_t tail = (std::uint32_t{mine} << kTailShift) + kOneTail;
        std::uint32_t alone = tail | mine | kSleepers;
        // relaxed: the lock is held already, and whoever sets F again does it by an RMW of the same word.
        word_.whole().compare_exchange_strong(alone, tail | mine, std::memory_order_relaxed, std::memory_order_relaxed);
    }

    void sleep_until_turn(std::uint16_t mine) noexcept {
        if (B::in_nmi())
            return; // it would not be put to sleep; no need to be looked for
        const CpuId cpu = B::this_cpu();
        auto& slots = cpus_[index(cpu)].slots;
        const std::uint16_t level = slots[0].depth++;
        std::atomic_signal_fence(std::memory_order_seq_cst); // a handler's wait must not take the same slot
        if (level >= slots.size()) {
            B::count(LockEvent::lock_no_node, 1); // it can only spin
        } else {
            Slot& slot = slots[level];
            slot.number.store(mine, std::memory_order_relaxed);
            slot.lock.store(this, std::memory_order_release); // the number is there before the slot counts
            // seq_cst twice: the first barrier pair above.
            waiting_word(cpu).fetch_or(waiting_bit(cpu), std::memory_order_seq_cst);
            word_.head().fetch_or(kSleepers, std::memory_order_seq_cst);
            TimedKicks<B>::wait_unless(
                [this, mine]() noexcept { return is_turn(word_.head().load(std::memory_order_seq_cst), mine); });
            slot.lock.store(nullptr, std::memory_order_relaxed); // late readers send a kick that harms nobody
        }
        std::atomic_signal_fence(std::memory_order_seq_cst);
        // The bit goes last and only with the outermost wait: a handler that waits in between sets and clears it again.
        if (--slots[0].depth == 0)
            waiting_word(cpu).fetch_and(~waiting_bit(cpu), std::memory_order_relaxed);
    }

    /// `lock` is compared and never followed: it was released before. Numbers are unique, so one waiter at most
    /// matches; none does if it is awake.
    [[gnu::noinline]] static void kick_waiter(const void* lock, std::uint16_t number) noexcept {
        // relaxed and acquire: the RMW of head that returned F has made every slot it stands for visible.
        for (std::size_t w = 0; w < waiting_.size(); ++w) {
            for (std::uint64_t bits = waiting_[w].load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
                const std::size_t cpu = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
                for (const Slot& slot : cpus_[cpu].slots) {
                    if (slot.lock.load(std::memory_order_acquire) == lock &&
                        slot.number.load(std::memory_order_relaxed) == number) {
                        TimedKicks<B>::kick(CpuId{static_cast<std::uint32_t>(cpu)});
                        return;
                    }
                }
            }
        }
    }

    [[nodiscard]] static Atomic<std::uint64_t>& waiting_word(CpuId cpu) noexcept { return waiting_[index(cpu) / 64]; }
    [[nodiscard]] static std::uint64_t waiting_bit(CpuId cpu) noexcept { return std::uint64_t{1} << (index(cpu) % 64); }

    inline static constinit std::array<PerCpu, B::kMaxCpus> cpus_{};
    /// CPUs with a slot in use, a superset.
    inline static constinit std::array<Atomic<std::uint64_t>, (B::kMaxCpus + 63) / 64> waiting_{};

    LockWord<B> word_;
};

} // namespace spinkick::sync
