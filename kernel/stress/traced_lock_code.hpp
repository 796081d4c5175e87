// SPDX-License-Identifier: BSD-2-Clause
//
// The code of stress::Traced, apart from it: included where a traced lock is instantiated, not where one is used.
#pragma once

#include "kernel/stress/traced_lock.hpp"
#include "kernel/sync/flight_events.hpp"

namespace spinkick::stress {

template <sync::Lock L>
void Traced<L>::lock() noexcept {
    using Event = sync::FlightEvent;
    auto& claims = lock_tracking.of(Machine::this_cpu());
    claims.wants(this, kind_of<Traced>());
    sync::record_event<Machine>(Event::wants, id());
    lock_.lock();
    sync::record_event<Machine>(Event::acquired, id());
    claims.acquired(this);
}

template <sync::Lock L>
bool Traced<L>::try_lock() noexcept {
    if (!lock_.try_lock())
        return false;
    auto& claims = lock_tracking.of(Machine::this_cpu());
    claims.wants(this, kind_of<Traced>());
    claims.acquired(this);
    sync::record_event<Machine>(sync::FlightEvent::acquired, id());
    return true;
}

template <sync::Lock L>
void Traced<L>::unlock() noexcept {
    lock_tracking.of(Machine::this_cpu()).released(this);
    sync::record_event<Machine>(sync::FlightEvent::releases, id());
    lock_.unlock();
}

} // namespace spinkick::stress
