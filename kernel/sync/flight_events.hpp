// SPDX-License-Identifier: BSD-2-Clause
//
// What a flight recorder is told about locks. The slow paths say it themselves, by record_event(); what happens at the
// border of a lock (wanted, acquired, released) is said by stress::Traced around it, so that the fast path of a lock
// that nobody traces carries nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spinkick::sync {

/// The argument of each in brackets.
enum class FlightEvent : std::uint8_t {
    none,
    wants,    ///< lock() was called [low half of the lock's address]
    queued,   ///< behind a waiter of the same lock [its CPU]
    halts,    ///< puts its vCPU to sleep [the LockEvent that counts such sleeps, kLockEvents for no special one]
    wakes,    ///< and is back from it [WaitEnd]
    acquired, ///< [as wants]
    releases, ///< unlock() is about to be called [as wants]
    kicks,    ///< begins to send a kick [the CPU it is for]
    kicked,   ///< and has sent it [as kicks]
};

inline constexpr auto kFlightEventNames = std::to_array<std::string_view>(
    {"none", "wants", "queued", "halts", "wakes", "acquired", "releases", "kicks", "kicked"});

/// To the flight recorder of back end B, if it has one: record(FlightEvent, std::uint32_t) noexcept.
template <class B>
[[gnu::always_inline]] inline void record_event(FlightEvent event, std::uint32_t argument) noexcept {
    if constexpr (requires { B::record(event, argument); })
        B::record(event, argument);
}

} // namespace spinkick::sync
