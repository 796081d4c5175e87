// SPDX-License-Identifier: BSD-2-Clause
//
// A spinning waiter gives its time to a vCPU that was preempted: perhaps to the holder, perhaps to a waiter whose turn
// it is. What a host does on a pause-loop exit (Raghavendra K T, "Better yield_to candidate using preemption
// notifiers", 2013), done by the guest, from what the hypervisor tells it.
//
// Every kSpinsBetweenLooks-th spin of a CPU it picks a vCPU by one of two methods, both beginning behind the vCPU that
// it yielded to last, so that all get their turn:
//
//   flags   method 1: walk the `preempted` bytes (B::is_preempted) up to the first that is set.
//   bitmap  method 2: find the next bit that is set in a bitmap that all CPUs share. A host sets and clears such bits
//           as it schedules; a guest is not told of that. So the bitmap is a cache: whoever finds nothing in it
//           refreshes it from the bytes, for all. A bit may be stale; the byte is looked at before the yield, and a
//           stale bit is counted, cleared and passed over.
//
// Counted, per CPU, in the pairs that belong together:
//
//   directed_yield_tried = directed_yield_preempted + directed_yield_stale     picked = yielded to + not any more
//   directed_yield_ran <= directed_yield_preempted                             its byte was clear at the next look
//
// "The next look" is the next kSpinsBetweenLooks-th spin of the same CPU, in the same wait or a later one: the vCPU ran
// between the two, or runs.
//
// A hint all the way: every load and store here is relaxed, nothing is ordered by it, and a lost update costs a yield.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

namespace detail {
// Not a member: clang 14 does not call a class's own consteval function in its definition.
template <LockMachine B>
[[nodiscard]] consteval bool tells_preemption() noexcept {
    if constexpr (requires { B::kTellsPreemption; })
        return B::kTellsPreemption;
    else
        return ParavirtBackend<B>;
}
} // namespace detail

template <LockMachine B>
class DirectedYield {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    /// Whether this back end can know who is preempted; where not, nothing of this is compiled in.
    static constexpr bool kOffered = detail::tells_preemption<B>();
    static constexpr std::uint32_t kSpinsBetweenLooks = 1u << 8;

    /// Once per spin, beside relax().
    static void spun() noexcept {
        if constexpr (kOffered) {
            const auto method = tuning.directed_yield.load(std::memory_order_relaxed);
            if (method != YieldMethod::off) [[unlikely]]
                spun_by(method);
        }
    }

    /// Forgets the bitmap, as if nobody had ever looked.
    static void forget() noexcept {
        for (auto& word : preempted_)
            word.store(0, std::memory_order_relaxed);
    }

  private:
    /// Touched by its own CPU only; an interrupt handler that waits may come in between, which costs a count of spins.
    struct alignas(64) PerCpu {
        Atomic<std::uint32_t> spins{0};
        Atomic<std::uint32_t> last{0};    ///< the vCPU yielded to last
        Atomic<std::uint32_t> awaited{0}; ///< 1: whether it ran is not known yet
    };
    static constexpr std::uint32_t kWords = (B::kMaxCpus + 63) / 64;

    [[gnu::noinline]] static void spun_by(YieldMethod method) noexcept {
        const CpuId me = B::this_cpu();
        PerCpu& self = cpus_[index(me)];
        const std::uint32_t spins = self.spins.load(std::memory_order_relaxed) + 1;
        self.spins.store(spins, std::memory_order_relaxed);
        if (spins % kSpinsBetweenLooks != 0 || !can_yield())
            return;

        const std::uint32_t last = self.last.load(std::memory_order_relaxed);
        if (self.awaited.load(std::memory_order_relaxed) != 0) {
            self.awaited.store(0, std::memory_order_relaxed);
            if (!B::is_preempted(CpuId{last}))
                B::count(LockEvent::directed_yield_ran, 1);
        }
        const auto target = method == YieldMethod::flags ? pick_by_flags(last, me) : pick_by_bitmap(last, me);
        if (!target)
            return;
        B::count(LockEvent::directed_yield_preempted, 1);
        self.last.store(raw(*target), std::memory_order_relaxed);
        self.awaited.store(1, std::memory_order_relaxed);
        B::yield_to(*target);
    }

    /// A service that is compiled in and was not found at boot.
    [[nodiscard]] static bool can_yield() noexcept {
        if constexpr (requires { B::can_yield(); })
            return B::can_yield();
        else
            return true;
    }
    /// Beyond every CPU that there is.
    [[nodiscard]] static std::uint32_t cpu_bound() noexcept {
        if constexpr (requires { B::cpu_bound(); })
            return B::cpu_bound();
        else
            return B::kMaxCpus;
    }

    [[nodiscard]] static std::optional<CpuId> pick_by_flags(std::uint32_t last, CpuId me) noexcept {
        const std::uint32_t cpus = cpu_bound();
        for (std::uint32_t n = 1; n <= cpus; ++n) {
            const CpuId cpu{(last + n) % cpus};
            if (cpu != me && B::is_preempted(cpu)) {
                B::count(LockEvent::directed_yield_tried, 1);
                return cpu;
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] static std::optional<CpuId> pick_by_bitmap(std::uint32_t last, CpuId me) noexcept {
        const std::uint32_t cpus = cpu_bound();
        for (bool refreshed = false;; refreshed = true) {
            std::uint32_t from = last + 1;
            for (std::uint32_t n = 0; n < cpus; ++n) { // others may set bits as fast as this clears them
                const auto found = find_next(from % cpus);
                if (!found)
                    break;
                from = raw(*found) + 1;
                if (*found == me) { // it runs, whatever the bitmap says
                    clear(me);
                    continue;
                }
                B::count(LockEvent::directed_yield_tried, 1);
                if (B::is_preempted(*found))
                    return found;
                B::count(LockEvent::directed_yield_stale, 1);
                clear(*found);
            }
            if (refreshed)
                return std::nullopt;
            refresh(cpus, me);
        }
    }

    /// The first bit at `from` or behind it, and then from the beginning up to it.
    [[nodiscard]] static std::optional<CpuId> find_next(std::uint32_t from) noexcept {
        for (std::uint32_t n = 0; n <= kWords; ++n) {
            const std::uint32_t w = (from / 64 + n) % kWords;
            std::uint64_t bits = preempted_[w].load(std::memory_order_relaxed);
            const std::uint64_t behind = ~std::uint64_t{0} << (from % 64);
            if (n == 0)
                bits &= behind;
            if (n == kWords)
                bits &= ~behind;
            if (bits != 0)
                return CpuId{w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))};
        }
        return std::nullopt;
    }

    static void clear(CpuId cpu) noexcept {
        preempted_[index(cpu) / 64].fetch_and(~(std::uint64_t{1} << (index(cpu) % 64)), std::memory_order_relaxed);
    }

    static void refresh(std::uint32_t cpus, CpuId me) noexcept {
        B::count(LockEvent::directed_yield_scan, 1);
        for (std::uint32_t w = 0; w < kWords && w * 64 < cpus; ++w) {
            std::uint64_t bits = 0;
            for (std::uint32_t cpu = w * 64; cpu < cpus && cpu < w * 64 + 64; ++cpu)
                if (CpuId{cpu} != me && B::is_preempted(CpuId{cpu}))
                    bits |= std::uint64_t{1} << (cpu % 64);
            preempted_[w].store(bits, std::memory_order_relaxed);
        }
    }

    inline static constinit std::array<PerCpu, B::kMaxCpus> cpus_{};
    inline static constinit std::array<Atomic<std::uint64_t>, kWords> preempted_{};
};

/// What a waiter does between two looks.
template <LockMachine B>
inline void spin_once() noexcept {
    B::relax();
    DirectedYield<B>::spun();
}

} // namespace spinkick::sync
