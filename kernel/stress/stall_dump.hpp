// SPDX-License-Identifier: BSD-2-Clause
//
// What is said about a stall: where each CPU is and in which state.
#pragma once

#include "kernel/types.hpp"

namespace spinkick::workers {

/// Asks every CPU by NMI and prints a line each, with the function it is in. `worst` is the one whose stall was
/// noticed.
void dump_stall(const char* why, CpuId worst) noexcept;

/// What a CPU noted about itself (workers::note), and whether it runs a worker.
[[nodiscard]] const char* note_of(CpuId cpu) noexcept;
[[nodiscard]] bool runs_worker(CpuId cpu) noexcept;

} // namespace spinkick::workers
