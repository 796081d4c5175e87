// SPDX-License-Identifier: BSD-2-Clause
//
// What is said about a stall: where each CPU is and in which state.
#pragma once

#include <span>

#include "kernel/stress/stall_verdict.hpp"
#include "kernel/types.hpp"

namespace spinkick::workers {

/// Asks every CPU by NMI and prints a line each, with the function it is in, and what the stall is. `why` begins the
/// dump; `worst` is the one whose stall was noticed. `workers` has what was known before anybody was asked: an NMI ends
/// a sleep, and whoever is asked may go on by that.
[[nodiscard]] StallVerdict dump_stall(const char* why, CpuId worst, std::span<StalledCpu> workers) noexcept;
/// The same without a word: for a stall that is expected.
[[nodiscard]] StallVerdict ask_stalled(std::span<StalledCpu> workers) noexcept;

/// What a CPU noted about itself (workers::note).
[[nodiscard]] const char* note_of(CpuId cpu) noexcept;

} // namespace spinkick::workers
