// SPDX-License-Identifier: BSD-2-Clause
//
// The switches of the locks. All of them may be changed while locks are in use; a waiter sees the new value at the
// start of its next spin. They are read in slow paths only.
#pragma once

#include <atomic>
#include <cstdint>

namespace spinkick::sync {

/// When a queued waiter stops spinning before its threshold (seed row 5; Linux's pv_wait_early and its reverted
/// variant).
enum class WaitEarly : std::uint8_t {
    off,       ///< never
    state,     ///< the predecessor's node says that it halted
    preempted, ///< that, or the hypervisor says that the predecessor's vCPU is preempted
};

/// Who may take a free lock past those who queue for it. Acts on the locks that allow it at all: pv-queued,
/// unfair-queued, unfair-pv-queued.
enum class Stealing : std::uint8_t {
    off,   ///< nobody
    entry, ///< a newcomer, before it queues
    on,    ///< a newcomer; and, in the unfair locks, who queues already
};

/// What a spinning waiter executes between two looks.
enum class RelaxHint : std::uint8_t {
    pause,  ///< PAUSE: what pause-loop exiting counts
    lfence, ///< LFENCE: holds back speculative looks for about as long, and no hypervisor sees it
    none,   ///< nothing
};

/// How a spinning waiter picks a preempted vCPU to yield to: directed_yield.hpp.
enum class YieldMethod : std::uint8_t { off, flags, bitmap };

struct Tuning {
    /// Spins before a waiter halts; Linux's SPIN_THRESHOLD is 2^15.
    std::atomic<std::uint64_t> spin_threshold{1u << 15};
    /// Looks before a waiter of the byte lock sleeps; Linux's TIMEOUT was 2^10, and could be changed while running.
    std::atomic<std::uint64_t> byte_timeout{1u << 10};
    /// The same for the locks of 2014, whose series called it QSPIN_THRESHOLD; a queue head spins twice as long.
    std::atomic<std::uint64_t> qspin_threshold{1u << 14};
    /// Half-way to its sleep, a queue head of the locks of 2014 kicks the holder, if it knows who that is.
    std::atomic<bool> kick_holder{true};
    std::atomic<Stealing> stealing{Stealing::on};
    /// Looks between two attempts to steal, for the waiter next to the queue head; see unfair_queue.hpp.
    std::atomic<std::uint32_t> steal_interval{1u << 3};
    std::atomic<WaitEarly> wait_early{WaitEarly::state};
    /// Acted on by the relax() of a back end, in all locks alike.
    std::atomic<RelaxHint> relax_hint{RelaxHint::pause};
    std::atomic<YieldMethod> directed_yield{YieldMethod::off};
    /// Negative control for the suite itself: every Nth kick is dropped; 0 drops none.
    std::atomic<std::uint32_t> drop_every_nth_kick{0};
};

inline constinit Tuning tuning{};

} // namespace spinkick::sync
