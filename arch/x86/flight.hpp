// SPDX-License-Identifier: BSD-2-Clause
//
// An event into the flight recorder of this CPU (kernel/stress/flight_recorder.hpp): one instruction takes a number
// that no interrupt can take as well, three stores write the record.
#pragma once

#include "arch/x86/percpu.hpp"
#include "arch/x86/time_stamp.hpp"
#include "kernel/stress/flight_recorder.hpp"

namespace spinkick::x86 {

inline void record(sync::FlightEvent event, std::uint32_t argument) noexcept {
    auto& block = percpu();
    if (block.flight_ring == nullptr) [[unlikely]]
        return; // before the CPUs have been placed
    const auto number = percpu_fetch_add(offsetof(PerCpu, flight_written), 1);
    block.flight_ring->put(number, time_stamp(), event, argument);
}

} // namespace spinkick::x86
