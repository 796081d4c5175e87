// SPDX-License-Identifier: BSD-2-Clause
//
// Which lock each CPU waits for, and which it holds: what turns "all of them run, and none gets on" into a cycle of
// names. Kept by stress::Traced around a lock; the lock itself knows nothing of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/sync/lock_view.hpp"
#include "kernel/types.hpp"

namespace spinkick::stress {

/// What a dump needs to know about a type of lock, without the type.
struct LockKind {
    const char* name = "";
    const char* backend = "";
    std::optional<sync::WordLayout> layout; ///< nothing: the word is shown bare
    std::uint64_t (*word)(const void* lock) noexcept = nullptr;
    sync::WaiterView (*waiter)(CpuId cpu) noexcept = nullptr; ///< nullptr: the lock has no queue
};

/// A lock that a CPU waits for or holds.
struct Claim {
    const void* lock = nullptr; ///< nullptr: an entry that was given up out of order
    const LockKind* kind = nullptr;
    bool held = false;
};

/// The claims of one CPU, written by that CPU only; an interrupt of it puts its own on top, and takes them away.
class LockClaims {
  public:
    static constexpr std::uint32_t kMost = 8; ///< further ones are not kept

    void wants(const void* lock, const LockKind& kind) noexcept {
        const auto n = count_.load(std::memory_order_relaxed); // one writer
        if (n < kMost) {
            auto& entry = entries_[n];
            entry.kind.store(&kind, std::memory_order_relaxed);
            entry.held.store(false, std::memory_order_relaxed);
            entry.lock.store(lock, std::memory_order_relaxed);
        }
        count_.store(n + 1, std::memory_order_release); // the entry is ready for a reader
    }
    void acquired(const void* lock) noexcept {
        if (auto* entry = find(lock))
            entry->held.store(true, std::memory_order_relaxed); // a reader takes it as it is
    }
    void released(const void* lock) noexcept {
        if (auto* entry = find(lock))
            entry->lock.store(nullptr, std::memory_order_relaxed);
        auto n = count_.load(std::memory_order_relaxed);
        if (n > kMost) { // what did not fit comes off first
            count_.store(n - 1, std::memory_order_relaxed);
            return;
        }
        while (n != 0 && entries_[n - 1].lock.load(std::memory_order_relaxed) == nullptr)
            --n;
        count_.store(n, std::memory_order_relaxed);
    }
    /// Of a CPU that was thrown out of everything.
    void forget() noexcept { count_.store(0, std::memory_order_relaxed); }

    /// By another CPU: a hint, unless this one stands still.
    [[nodiscard]] std::uint32_t count() const noexcept {
        const auto n = count_.load(std::memory_order_acquire); // pairs with wants()
        return n < kMost ? n : kMost;
    }
    [[nodiscard]] Claim at(std::uint32_t n) const noexcept {
        const auto& entry = entries_[n];
        return {entry.lock.load(std::memory_order_relaxed), entry.kind.load(std::memory_order_relaxed),
                entry.held.load(std::memory_order_relaxed)};
    }
    /// The innermost wait, if there is one.
    [[nodiscard]] std::optional<Claim> waits_for() const noexcept {
        for (auto n = count(); n-- != 0;)
            if (const auto claim = at(n); claim.lock != nullptr && !claim.held)
                return claim;
        return std::nullopt;
    }
    [[nodiscard]] bool holds(const void* lock) const noexcept {
        for (std::uint32_t n = 0; n < count(); ++n)
            if (const auto claim = at(n); claim.lock == lock && claim.held)
                return true;
        return false;
    }

  private:
    struct Entry {
        std::atomic<const void*> lock{nullptr};
        std::atomic<const LockKind*> kind{nullptr};
        std::atomic<bool> held{false};
    };
    Entry* find(const void* lock) noexcept {
        for (auto n = count(); n-- != 0;)
            if (entries_[n].lock.load(std::memory_order_relaxed) == lock)
                return &entries_[n];
        return nullptr;
    }

    std::array<Entry, kMost> entries_{};
    std::atomic<std::uint32_t> count_{0};
};

/// Of all CPUs.
class LockTracking {
  public:
    [[nodiscard]] LockClaims& of(CpuId cpu) noexcept { return cpus_[index(cpu)].claims; }
    [[nodiscard]] const LockClaims& of(CpuId cpu) const noexcept { return cpus_[index(cpu)].claims; }

    /// The CPU below `bound` that holds a lock; nobody if none is known to.
    [[nodiscard]] std::optional<CpuId> holder_of(const void* lock, std::uint32_t bound) const noexcept {
        for (std::uint32_t cpu = 0; cpu < bound; ++cpu)
            if (cpus_[cpu].claims.holds(lock))
                return CpuId{cpu};
        return std::nullopt;
    }

    /// CPUs of which each waits for a lock that the next one holds, and the last for one that the first holds. 0: from
    /// `start` no such cycle is reached. Writes at most out.size() of them.
    template <std::size_t N>
    [[nodiscard]] std::size_t cycle_from(CpuId start, std::uint32_t bound, std::array<CpuId, N>& out) const noexcept {
        std::size_t length = 0;
        for (auto cpu = start; length < N;) {
            for (std::size_t i = 0; i < length; ++i) {
                if (out[i] != cpu)
                    continue;
                for (std::size_t j = i; j < length; ++j) // what led to it is no part of it
                    out[j - i] = out[j];
                return length - i;
            }
            out[length++] = cpu;
            const auto claim = of(cpu).waits_for();
            if (!claim)
                return 0;
            const auto holder = holder_of(claim->lock, bound);
            if (!holder)
                return 0;
            cpu = *holder;
        }
        return 0;
    }

  private:
    struct alignas(64) PerCpu {
        LockClaims claims;
    };
    std::array<PerCpu, kMaxCpus> cpus_{};
};

inline constinit LockTracking lock_tracking{};

} // namespace spinkick::stress
