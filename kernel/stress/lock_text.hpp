// SPDX-License-Identifier: BSD-2-Clause
//
// A lock and its waiters in words, for dumps.
#pragma once

#include <cstdint>

#include "kernel/stress/lock_tracking.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/text.hpp"

namespace spinkick::stress {

/// "held, pending, tail CPU 3 node 0": what a lock's word says.
void describe_word(TextBuffer& out, sync::WordLayout layout, std::uint64_t word) noexcept;

/// A line about a lock: name, address, word.
void log_lock(const void* lock, const LockKind& kind) noexcept;
/// The lines about what a CPU waits for and holds; none for a CPU without claims.
void log_claims(CpuId cpu, std::uint32_t cpu_bound) noexcept;
/// The line about the cycle that a CPU is in.
void log_cycle(CpuId cpu, std::uint32_t cpu_bound) noexcept;

} // namespace spinkick::stress
