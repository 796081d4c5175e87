// SPDX-License-Identifier: BSD-2-Clause
//
// Work of a known length: what a section or a think time does instead of sleeping. It is counted in units of a loop,
// not in time on the clock: a vCPU that is taken off its physical CPU in the middle has done nothing meanwhile and
// still owes the rest, as real work would. No PAUSE in it: that would be an exit under pause-loop exiting.
#pragma once

#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::stress {

/// Does `units` of work on this CPU.
void work(std::uint64_t units) noexcept;
/// Units that take about `span` when nobody interferes; measured once, the fastest of several tries.
[[nodiscard]] std::uint64_t units_for(Nanoseconds span) noexcept;

} // namespace spinkick::stress
