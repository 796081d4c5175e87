// SPDX-License-Identifier: BSD-2-Clause
//
// One vCPU that sleeps and one that kicks it, round by round: the frame of the kick tests. They test a back end and
// with it the hypervisor; no lock is involved.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "arch/x86/paravirt/backends.hpp"
#include "kernel/clock.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::paravirt_tests {

inline constexpr std::uint32_t kKicker = 0; ///< worker 0 never sleeps and never masks interrupts
inline constexpr std::uint32_t kSleeper = 1;

/// Rounds of one test: as many as fit into the time, but some on the slowest machine.
inline constexpr std::uint32_t kLeastRounds = 16;
inline constexpr std::uint32_t kMostRounds = 2000;
inline constexpr Nanoseconds kTime = milliseconds(200);

/// The first CPU of the workers: the boot CPU stays out of it where two others are left, since its timer is the
/// watchdog's.
[[nodiscard]] inline std::uint32_t first_cpu() noexcept { return workers::available(1) >= 2 ? 1 : 0; }

/// xorshift64: the same choices for the same seed.
class Random {
  public:
    explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed | 1) {}
    [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ % bound;
    }

  private:
    std::uint64_t state_;
};

/// A flag that one worker raises to the number of its round and the other waits for. On a line of its own.
class alignas(64) Turn {
  public:
    /// seq_cst: published with a full barrier before the kick that follows, as every back end asks of its callers.
    void set(std::uint32_t round) noexcept { value_.exchange(round, std::memory_order_seq_cst); }
    [[nodiscard]] bool reached(std::uint32_t round) const noexcept {
        return value_.load(std::memory_order_acquire) >= round; // what the other did before set() is seen
    }
    /// Spins; a peer that never gets there is the watchdog's business.
    void await(std::uint32_t round) const noexcept {
        while (!reached(round))
            machine::relax();
    }
    void reset() noexcept { value_.store(0, std::memory_order_relaxed); } // before the workers start

  private:
    std::atomic<std::uint32_t> value_{0};
};

inline void spin_for(Nanoseconds span) noexcept {
    const clock::Deadline deadline(span);
    while (!deadline.passed())
        machine::relax();
}

/// Decides on the kicker's side whether another round follows.
class Rounds {
  public:
    Rounds() noexcept : deadline_(kTime) {}
    [[nodiscard]] bool is_last(std::uint32_t round) const noexcept {
        return round >= kMostRounds || (round >= kLeastRounds && deadline_.passed());
    }

  private:
    clock::Deadline deadline_;
};

/// Sum over all CPUs.
[[nodiscard]] inline std::uint64_t total(sync::LockEvent event) noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        sum += machine::lock_event(machine::online_cpu(n), event);
    return sum;
}

/// Runs `body` on `count` workers. False, and a verdict in `context`, if one of them stood still.
template <class B>
[[nodiscard]] bool run_workers(test::TestContext& context, std::uint32_t count, workers::Body body, void* argument,
                               const char* lost) noexcept {
    workers::Job job;
    job.body = body;
    job.argument = argument;
    job.count = count;
    job.first = first_cpu();
    const auto outcome = workers::run(job);
    if (outcome.all_completed())
        return true;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        B::reset_cpu(machine::online_cpu(n));
    context.fail("%s: CPU %u stood still", lost, raw(outcome.first_stalled));
    return false;
}

/// The test of one claim on every sleeping back end.
template <class Maker, class... Bs>
[[nodiscard]] consteval auto tests_on(Maker maker, sync::TypeList<Bs...>) noexcept {
    return std::array<test::Test, sizeof...(Bs)>{maker.template operator()<Bs>()...};
}

} // namespace spinkick::paravirt_tests
