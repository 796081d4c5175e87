// SPDX-License-Identifier: BSD-2-Clause
//
// What a stall is: told from what each CPU did when it was asked, from kicks that were sent and not taken, and from the
// time that the hypervisor gave to others. A judgement over facts, without a machine.
#pragma once

#include <cstdint>
#include <span>

#include "kernel/types.hpp"

namespace spinkick::workers {

enum class StallKind : std::uint8_t {
    none,
    lost_ipi,         ///< a vCPU is halted although an interrupt was sent to it: the machine or hypervisor lost it
    lost_kick,        ///< a vCPU is halted although it was kicked: the hypervisor lost the kick
    lost_wake_up,     ///< a vCPU is halted, and nobody has kicked it: the lock forgot it
    holder_preempted, ///< the host does not run a vCPU on which others wait
    slow_host,        ///< the host runs none of those that stand still
    starvation,       ///< a vCPU runs and never gets on, while others do
    deadlock,         ///< each waits for a lock that another one of them holds; or all run, and none gets on
    holder_stuck,     ///< a vCPU holds what others wait for, waits for no lock itself, and does not get on
    no_answer,        ///< a vCPU does not even take an NMI
};

[[nodiscard]] const char* name(StallKind kind) noexcept;
/// What the kind means for whoever reads the dump.
[[nodiscard]] const char* meaning(StallKind kind) noexcept;

/// A CPU with a worker, at the time of the stall.
struct StalledCpu {
    CpuId cpu{};
    bool gets_on = false;             ///< has made progress within the interval
    bool answered = false;            ///< took the NMI
    bool halted = false;              ///< was in a HLT or a poll when it came
    bool interrupt_requested = false; ///< an interrupt waits that it would take, and did not
    std::uint32_t kicks_by_ipi = 0;   ///< sent to it by fixed IPI, not taken by any wait
    std::uint32_t kicks_by_hypervisor = 0;
    // By the lock tracking; all false for locks that nobody traces.
    bool in_cycle = false;    ///< waits for a lock whose holder waits ... for one that this CPU holds
    bool waits = false;       ///< for a lock
    bool holds_up = false;    ///< holds a lock that another one of these waits for
    bool is_entitled = false; ///< the lock it waits for is held by another CPU: it may well sleep
    Nanoseconds stolen{};     ///< by the host's account, since it last got on
    Nanoseconds silent_for{}; ///< since it last got on
};

struct StallVerdict {
    StallKind kind = StallKind::none;
    CpuId cpu{}; ///< the one that decides it
};

/// `cpus`: all workers that have not ended. The strongest evidence wins: a signal that was sent and not taken, then a
/// host that takes time away, then what the lock itself can have done.
[[nodiscard]] StallVerdict judge_stall(std::span<const StalledCpu> cpus) noexcept;

} // namespace spinkick::workers
