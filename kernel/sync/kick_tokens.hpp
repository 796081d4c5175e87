// SPDX-License-Identifier: BSD-2-Clause
//
// Accounts for every kick, so that a hypervisor that loses one, or invents one, is found by arithmetic.
//
// A kick first adds a token to its target and then goes out by whatever means the back end has (hypercall, IPI, event
// channel, futex). A wait that returns takes all tokens of its CPU at once: one of them is *ended* (the wait had slept)
// or *kept* (it had not), the rest came along and are *merged*. What nobody has taken is *unspent*. At rest, with each
// term counted where it happens:
//
//   kick_stats = token_ended + token_kept + token_merged + unspent
//
// A sleep that ends with no token ends by an interrupt, or for no reason that this kernel knows. The second kind is
// legitimate only when an earlier wait took the token of a kick that was still on its way and did not end that wait:
//
//   wake_without_token <= token_kept + token_merged + token_interrupted
//
// Tokens account and never decide: whether a wait may sleep is left to the machinery under test. A kick that the
// hypervisor lost therefore shows as a CPU asleep with a token.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/flight_events.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

/// The tokens of one sleeping back end B.
template <LockMachine B>
class KickTokens {
  public:
    /// Adds the token, then calls `send`, which signals `target`. The RMW is a full barrier: what the caller stored
    /// before is seen by whatever the signal wakes.
    template <std::invocable Send>
    static void kick(CpuId target, Send send) noexcept {
        B::count(LockEvent::kick_stats, 1);
        record_event<B>(FlightEvent::kicks, raw(target));
        slots_[index(target)].tokens.fetch_add(1, std::memory_order_seq_cst);
        if (!dropped())
            send();
        record_event<B>(FlightEvent::kicked, raw(target));
    }

    /// Called by wait_unless() of this CPU right before it returns.
    static void wait_returned(WaitEnd end) noexcept {
        if (end != WaitEnd::not_slept)
            B::count(LockEvent::hibernate_stats, 1);
        // acquire: what the kicker stored before its kick is seen after the wait.
        const std::uint32_t taken = slots_[index(B::this_cpu())].tokens.exchange(0, std::memory_order_acquire);
        if (taken != 0) {
            B::count(end == WaitEnd::not_slept ? LockEvent::token_kept : LockEvent::token_ended, 1);
            if (end == WaitEnd::interrupted)
                B::count(LockEvent::token_interrupted, 1);
            if (taken > 1)
                B::count(LockEvent::token_merged, taken - 1);
        } else if (end == WaitEnd::slept) {
            B::count(LockEvent::wake_without_token, 1);
        } else if (end == WaitEnd::interrupted) {
            B::count(LockEvent::wake_by_interrupt, 1);
        }
    }

    /// Tokens that no wait of this CPU has taken. Exact when nobody kicks it.
    [[nodiscard]] static std::uint32_t unspent(CpuId cpu) noexcept {
        return slots_[index(cpu)].tokens.load(std::memory_order_relaxed);
    }

    /// For a CPU that was thrown out of its wait: what it has not taken is nobody's any more, and stays unspent.
    static void forget(CpuId cpu) noexcept {
        // relaxed: nothing is woken by it, and both are counts.
        forgotten_.fetch_add(slots_[index(cpu)].tokens.exchange(0, std::memory_order_relaxed),
                             std::memory_order_relaxed);
    }

    /// Tokens that nobody has taken, over all CPUs: the last term of the identity.
    [[nodiscard]] static std::uint64_t unspent() noexcept {
        std::uint64_t sum = forgotten_.load(std::memory_order_relaxed);
        for (const Slot& slot : slots_)
            sum += slot.tokens.load(std::memory_order_relaxed);
        return sum;
    }

  private:
    /// Negative control (Tuning::drop_every_nth_kick): a kick that stays in this function, as if the hypervisor lost
    /// it.
    static bool dropped() noexcept {
        const std::uint32_t every = tuning.drop_every_nth_kick.load(std::memory_order_relaxed);
        if (every == 0)
            return false;
        return drop_clock_.fetch_add(1, std::memory_order_relaxed) % every == every - 1;
    }

    // A line per CPU: kickers of different targets must not slow each other down.
    struct alignas(64) Slot {
        typename B::template Atomic<std::uint32_t> tokens{0};
    };

    inline static constinit std::array<Slot, B::kMaxCpus> slots_{};
    inline static constinit typename B::template Atomic<std::uint64_t> forgotten_{0};
    inline static constinit typename B::template Atomic<std::uint32_t> drop_clock_{0};
};

} // namespace spinkick::sync
