// SPDX-License-Identifier: BSD-2-Clause
//
// Runs one body on many CPUs at once, under the watchdog. This is how every test and benchmark uses more than one CPU.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/stress/stall_verdict.hpp"
#include "kernel/types.hpp"

namespace spinkick::workers {

/// The body: `worker` counts from 0 to n-1. It reports progress (below) at least once in every watchdog interval.
using Body = void (*)(std::uint32_t worker, void* argument);

struct Job {
    Body body = nullptr;
    void* argument = nullptr;
    std::uint32_t count = 1; ///< workers; at most available(first)
    /// Worker 0 runs on the first-th online CPU, the others on those behind it. 0 makes the boot CPU a worker; bodies
    /// that wait with interrupts masked take 1 where they can: the boot CPU's timer is what watches, and must stay
    /// alive.
    std::uint32_t first = 0;
    Nanoseconds deadline = seconds(60); ///< for the whole job, whatever its progress
    /// over() turns true after this time, to the next tick of the watchdog (20 ms). Bodies look at that flag instead of
    /// a clock of their own: where the hypervisor emulates RDTSC, a look at the clock costs more than the lock under
    /// test.
    Nanoseconds duration = seconds(60);
    bool stall_expected = false; ///< a test of the watchdog itself: the dump is left out
    /// Describes the object under test in a dump (its word ...), and makes it usable again after a rescue; may be
    /// nullptr.
    void (*describe)(void* argument) noexcept = nullptr;
};

struct Outcome {
    std::uint32_t started = 0;
    std::uint32_t completed = 0; ///< bodies that returned by themselves
    std::uint32_t rescued = 0;   ///< bodies that the watchdog ended
    bool stalled = false;        ///< the watchdog struck; who was asked by NMI may have gone on by that, and completed
    CpuId first_stalled{};       ///< valid if stalled
    StallVerdict verdict{};      ///< of the first stall; none: it was the job's deadline
    [[nodiscard]] bool all_completed() const noexcept { return started == completed && !stalled; }
};

/// Runs the job and returns when no worker runs any more. Boot CPU only, task context.
[[nodiscard]] Outcome run(const Job& job) noexcept;

/// Called at each look of the watchdog while a job runs, from its interrupt on the boot CPU; nullptr: nothing is.
void set_look_hook(void (*hook)() noexcept) noexcept;
/// What the dump of a stall says, of a job that gets on, or of CPUs without one. Boot CPU only.
void dump() noexcept;

/// How many workers a job may have.
[[nodiscard]] std::uint32_t available(std::uint32_t first = 0) noexcept;
/// The CPU on which a worker of the running job is.
[[nodiscard]] CpuId cpu_of(std::uint32_t worker, std::uint32_t first = 0) noexcept;

/// The job's duration has passed: bodies should come to their end.
[[nodiscard]] bool over() noexcept;
/// Says that this CPU gets on: one plain store to a line of its own.
void progress() noexcept;
/// What this CPU works for, shown in a dump: "waits", "holds" ... Static text.
void note(const char* what) noexcept;

/// All `count` workers meet: returns true when all have arrived, false if one did not within the job's watchdog
/// interval.
class Barrier {
  public:
    [[nodiscard]] bool wait(std::uint32_t count) noexcept;
    void reset() noexcept;

  private:
    std::uint32_t arrived_ = 0; ///< through std::atomic_ref: a Barrier in .bss needs no constructor
    std::uint32_t generation_ = 0;
};

/// Interval without progress after which a worker counts as stalled (watchdog_ms on the command line).
void set_watchdog(Nanoseconds interval) noexcept;
[[nodiscard]] Nanoseconds watchdog() noexcept;

} // namespace spinkick::workers
