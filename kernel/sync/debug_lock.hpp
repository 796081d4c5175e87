// SPDX-License-Identifier: BSD-2-Clause
//
// The checking lock of a kernel with lock debugging switched on (Linux CONFIG_DEBUG_SPINLOCK): it knows its owner,
// notices misuse, and waits in a loop of try_lock() with a bound, after which it says that something is stuck and goes
// on. It never sleeps: lock debugging bypasses the paravirtual paths altogether, which is why it serves as a fourth
// lock in comparisons.
//
//   byte:   0 --xchg 1----> 1       lock, after a look at the owner; then owner = this CPU
//           1 --store 0---> 0       unlock, after owner = nobody
//
// Misuse is counted by kind and never acted on beyond what keeps the lock whole: a lock() of a lock that its own CPU
// holds returns as if taken (waiting would be for ever), an unlock() of a free lock changes nothing, one by another CPU
// than the owner releases.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/lock_view.hpp"

namespace spinkick::sync {

/// What a debug lock notices.
enum class LockMisuse : std::uint8_t {
    recursion,        ///< lock() on the CPU that holds it
    unlock_by_other,  ///< unlock() on another CPU than the owner
    unlock_of_free,   ///< unlock() of a lock that nobody holds
    suspected_lockup, ///< a wait beyond the bound
};
inline constexpr std::size_t kLockMisuses = 4;

template <LockMachine B>
class DebugLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "debug";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;
    static constexpr WordLayout kWord = WordLayout::owner;

    constexpr DebugLock() noexcept = default;
    DebugLock(const DebugLock&) = delete;
    DebugLock& operator=(const DebugLock&) = delete;

    void lock() noexcept {
        // relaxed: only this CPU writes its own number there.
        if (owner_.load(std::memory_order_relaxed) == me()) [[unlikely]]
            return note(LockMisuse::recursion);
        if (byte_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
            lock_slow();
        owner_.store(me(), std::memory_order_relaxed); // inside the section
    }

    [[nodiscard]] bool try_lock() noexcept {
        if (byte_.load(std::memory_order_relaxed) != 0 || byte_.exchange(1, std::memory_order_acquire) != 0)
            return false;
        owner_.store(me(), std::memory_order_relaxed);
        return true;
    }

    void unlock() noexcept {
        const std::uint32_t owner = owner_.load(std::memory_order_relaxed);
        if (owner != me()) [[unlikely]] {
            if (byte_.load(std::memory_order_relaxed) == 0)
                return note(LockMisuse::unlock_of_free);
            note(LockMisuse::unlock_by_other);
        }
        owner_.store(kNobody, std::memory_order_relaxed); // still inside: the release below publishes it
        byte_.store(0, std::memory_order_release);
    }

    /// The byte, and above it the owner: CPU + 1, 0 for nobody.
    [[nodiscard]] std::uint64_t word() const noexcept {
        return byte_.load(std::memory_order_relaxed) | std::uint64_t{owner_.load(std::memory_order_relaxed)} << 32;
    }

    /// How often a kind of misuse was noticed, on any lock of this type.
    [[nodiscard]] static std::uint32_t misuses(LockMisuse kind) noexcept {
        return misuses_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
    }
    static void reset_cpu(CpuId) noexcept {}
    [[nodiscard]] static bool at_rest() noexcept { return true; }

  private:
    static constexpr std::uint32_t kNobody = 0;
    /// Linux waits for a second's worth of loops before it speaks up.
    static constexpr std::uint64_t kBound = std::uint64_t{1} << 24;

    [[nodiscard]] static std::uint32_t me() noexcept { return raw(B::this_cpu()) + 1; }
    static void note(LockMisuse kind) noexcept {
        misuses_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed); // a count, and nothing else
    }

    [[gnu::noinline]] void lock_slow() noexcept {
        for (std::uint64_t looks = 1;; ++looks) {
            if (byte_.load(std::memory_order_relaxed) == 0 && byte_.exchange(1, std::memory_order_acquire) == 0)
                return;
            if (looks == kBound)
                note(LockMisuse::suspected_lockup); // once for a wait; it goes on
            B::relax();
        }
    }

    inline static constinit std::array<Atomic<std::uint32_t>, kLockMisuses> misuses_{};

    Atomic<std::uint8_t> byte_{0};
    Atomic<std::uint32_t> owner_{kNobody};
};

} // namespace spinkick::sync
