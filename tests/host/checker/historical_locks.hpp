// SPDX-License-Identifier: BSD-2-Clause
//
// Negative controls of the checker: locks that were in use and had a fault, each in the form that it had, and one that
// is set up wrongly. The good locks of kernel/sync differ from them by what repaired it. Reduced to what the fault
// needs: one waiting slot for a CPU, so they are not for waits inside waits.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/timed_kicks.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::checker {

/// The first form of the paravirtual ticket lock (Linux 3.11 to 3.19): the flag of the sleepers is bit 0 of tail. An
/// unlock cannot learn it from the RMW that releases, which is on head. So it reads the word again when the lock is
/// free, and clears the flag there: in memory that may belong to somebody else by then, since the next holder may have
/// been the last one and have freed it.
template <sync::ParavirtBackend B>
class TailFlagTicketLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "pv-ticket-tail-flag";
    static constexpr bool kIsFifo = true;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;

    void lock() noexcept {
        const std::uint32_t seen = word_.whole().fetch_add(kOneTail, std::memory_order_acquire);
        const auto mine = static_cast<std::uint16_t>(seen >> kTailShift & ~std::uint32_t{kSleepers});
        for (;;) {
            std::uint64_t left =
                std::max<std::uint64_t>(1, sync::tuning.spin_threshold.load(std::memory_order_relaxed));
            for (; left != 0; --left) {
                if (word_.head().load(std::memory_order_acquire) == mine)
                    return;
                B::relax();
            }
            Slot& slot = slots_[index(B::this_cpu())];
            slot.number.store(mine, std::memory_order_relaxed);
            slot.lock.store(this, std::memory_order_release);
            word_.tail().fetch_or(kSleepers, std::memory_order_seq_cst);
            sync::TimedKicks<B>::wait_unless(
                [this, mine]() noexcept { return word_.head().load(std::memory_order_seq_cst) == mine; });
            slot.lock.store(nullptr, std::memory_order_relaxed);
        }
    }

    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed);
        if (((seen >> kTailShift ^ seen) & 0xffff & ~std::uint32_t{kSleepers}) != 0)
            return false;
        return word_.whole().compare_exchange_strong(seen, seen + kOneTail, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
    }

    void unlock() noexcept {
        const std::uint32_t before = word_.whole().load(std::memory_order_relaxed);
        word_.head().fetch_add(kOne, std::memory_order_seq_cst);
        // The fault: the lock is free, and this is no longer this CPU's memory.
        if ((word_.tail().load(std::memory_order_relaxed) & kSleepers) == 0)
            return;
        const auto next = static_cast<std::uint16_t>(before + kOne);
        std::uint32_t released = (before & 0xffff'0000) | next;
        const std::uint32_t cleared = released & ~(std::uint32_t{kSleepers} << kTailShift);
        if (cleared >> kTailShift == next &&
            word_.whole().compare_exchange_strong(released, cleared, std::memory_order_seq_cst,
                                                  std::memory_order_relaxed))
            return; // nobody waits
        for (std::uint32_t cpu = 0; cpu < B::kMaxCpus; ++cpu) {
            if (slots_[cpu].lock.load(std::memory_order_acquire) == this &&
                slots_[cpu].number.load(std::memory_order_relaxed) == next) {
                sync::TimedKicks<B>::kick(CpuId{cpu});
                return;
            }
        }
    }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    static constexpr unsigned kTailShift = 16;
    static constexpr std::uint16_t kSleepers = 1;
    static constexpr std::uint16_t kOne = 2;
    static constexpr std::uint32_t kOneTail = std::uint32_t{kOne} << kTailShift;

    struct alignas(64) Slot {
        Atomic<const void*> lock{nullptr};
        Atomic<std::uint16_t> number{0};
    };
    inline static constinit std::array<Slot, B::kMaxCpus> slots_{};

    sync::LockWord<B> word_;
};

enum class ByteLockFault : std::uint8_t {
    /// The release is a plain store, and only the compiler is kept from moving the look at the count above it (Linux
    /// 2.6.27). The processor is not: the look comes first, finds nobody, and the waiter sleeps for good.
    no_barrier,
    /// Only the first waiter that is found is kicked (as Linux did at first). If that one was interrupted in its sleep,
    /// and
    /// the handler waits for another CPU, which sleeps for the same lock, then both wait for ever.
    kicks_one,
};

template <sync::ParavirtBackend B, ByteLockFault kFault>
class FaultyByteLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = kFault == ByteLockFault::no_barrier ? "byte-no-barrier" : "byte-kicks-one";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;

    void lock() noexcept {
        while (!spin() && !sleep()) {
        }
    }

    [[nodiscard]] bool try_lock() noexcept {
        return locked_.load(std::memory_order_relaxed) == 0 && locked_.exchange(1, std::memory_order_acquire) == 0;
    }

    void unlock() noexcept {
        if constexpr (kFault == ByteLockFault::no_barrier)
            locked_.store(0, std::memory_order_release);
        else
            locked_.exchange(0, std::memory_order_seq_cst);
        if (spinners_.load(std::memory_order_relaxed) == 0)
            return;
        for (std::uint32_t cpu = 0; cpu < B::kMaxCpus; ++cpu) {
            if (slots_[cpu].lock.load(std::memory_order_relaxed) != this)
                continue;
            sync::TimedKicks<B>::kick(CpuId{cpu});
            if constexpr (kFault == ByteLockFault::kicks_one)
                return;
        }
    }

    [[nodiscard]] std::uint64_t word() const noexcept { return locked_.load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    bool spin() noexcept {
        std::uint64_t left = std::max<std::uint64_t>(1, sync::tuning.byte_timeout.load(std::memory_order_relaxed));
        for (; left != 0; --left) {
            if (locked_.exchange(1, std::memory_order_acquire) == 0)
                return true;
            B::relax();
        }
        return false;
    }

    bool sleep() noexcept {
        auto& slot = slots_[index(B::this_cpu())].lock;
        slot.store(this, std::memory_order_relaxed); // published by the RMWs below
        spinners_.fetch_add(1, std::memory_order_seq_cst);
        bool won = false;
        sync::TimedKicks<B>::wait_unless([this, &won]() noexcept {
            won = locked_.exchange(1, std::memory_order_seq_cst) == 0;
            return won;
        });
        spinners_.fetch_sub(1, std::memory_order_relaxed);
        slot.store(nullptr, std::memory_order_relaxed);
        return won;
    }

    struct alignas(64) Slot {
        Atomic<const void*> lock{nullptr};
    };
    inline static constinit std::array<Slot, B::kMaxCpus> slots_{};

    Atomic<std::uint8_t> locked_{0};
    Atomic<std::uint16_t> spinners_{0};
};

/// A ticket lock with room for fewer numbers than there are CPUs, as one of 8 bits has on a machine of more than 256:
/// the numbers come round, and two CPUs hold the same one. Here with one bit, which is not enough for three.
template <sync::LockMachine B>
class NarrowTicketLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "ticket-narrow";
    static constexpr bool kIsFifo = true;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;

    void lock() noexcept {
        const std::uint32_t mine = tail_.fetch_add(1, std::memory_order_acquire) & kMask;
        while ((head_.load(std::memory_order_acquire) & kMask) != mine)
            B::relax();
    }
    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t seen = tail_.load(std::memory_order_relaxed);
        return head_.load(std::memory_order_relaxed) == seen &&
               tail_.compare_exchange_strong(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed);
    }
    void unlock() noexcept { head_.fetch_add(1, std::memory_order_release); }

    [[nodiscard]] std::uint64_t word() const noexcept { return tail_.load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    static constexpr std::uint32_t kMask = 1;

    Atomic<std::uint32_t> head_{0};
    Atomic<std::uint32_t> tail_{0};
};

} // namespace spinkick::checker
