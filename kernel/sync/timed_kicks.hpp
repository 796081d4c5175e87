// SPDX-License-Identifier: BSD-2-Clause
//
// Kicks and waits of the paravirtual locks with their latency counters: what a kick costs its sender, and how long
// after it the target runs again. Both are summed in TSC ticks; dividing by pv_kick_unlock and pv_kick_wake gives the
// means that Linux shows under these names.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/flight_events.hpp"

namespace spinkick::sync {

template <ParavirtBackend B>
class TimedKicks {
  public:
    /// The kick of an unlock slow path.
    static void kick(CpuId cpu) noexcept {
        const Tsc start = B::now();
        // relaxed: a statistic. A waiter that misses it counts one wake less.
        kicked_at_[index(cpu)].store(start.value, std::memory_order_relaxed);
        B::count(LockEvent::pv_kick_unlock, 1);
        B::kick(cpu);
        B::count(LockEvent::pv_latency_kick, (B::now() - start).value);
    }

    /// B::wait_unless(done), timed if a kick arrives in it, or if it sleeps and the back end wants to know for how
    /// long. `why` is the event that counts waits of this kind, for the flight recorder.
    template <class Done>
    static void wait_unless(LockEvent why, Done done) noexcept {
        auto& kicked_at = kicked_at_[index(B::this_cpu())];
        kicked_at.store(0, std::memory_order_relaxed);
        if constexpr (kRecordsBlocked) {
            Tsc looked{};
            const WaitEnd end = B::wait_unless([&done, &looked, why]() noexcept {
                if (done())
                    return true;
                record_event<B>(FlightEvent::halts, static_cast<std::uint32_t>(why));
                looked = B::now();
                return false;
            });
            if (end != WaitEnd::not_slept)
                B::record_blocked(B::now() - looked);
            if (looked.value != 0)
                record_event<B>(FlightEvent::wakes, static_cast<std::uint32_t>(end));
        } else {
            B::wait_unless(done);
        }
        if (const std::uint64_t kicked = kicked_at.load(std::memory_order_relaxed); kicked != 0) {
            B::count(LockEvent::pv_kick_wake, 1);
            B::count(LockEvent::pv_latency_wake, (B::now() - Tsc{kicked}).value);
        }
    }

    /// The same, for waits that have no counter of their own.
    template <class Done>
    static void wait_unless(Done done) noexcept {
        wait_unless(LockEvent::hibernate_stats, done);
    }

  private:
    static constexpr bool kRecordsBlocked = requires(Tsc length) { B::record_blocked(length); };

    inline static constinit std::array<typename B::template Atomic<std::uint64_t>, B::kMaxCpus> kicked_at_{};
};

} // namespace spinkick::sync
