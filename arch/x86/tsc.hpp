// SPDX-License-Identifier: BSD-2-Clause
//
// The time stamp counter as the kernel's clock: its frequency, and how far the counters of the CPUs are apart.
#pragma once

#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::x86::tsc {

/// A frequency that somebody offers, with the name of who does.
struct Source {
    std::uint64_t khz = 0; ///< 0: does not say
    const char* name = "";
};

/// Starts the clock on an assumed 1 GHz, so that bounded waits work before the frequency is known.
void start() noexcept;
/// Fixes the frequency: `paravirt` if it says one, else CPUID leaf 0x15, 0x16, the hypervisor's leaf 0x40000010, else a
/// few milliseconds against the ACPI PM timer at `pm_timer_port` (0: none), else against the PIT where port 0x61
/// answers. False if nothing does (the clock then goes on at 1 GHz, which the caller must say).
[[nodiscard]] bool calibrate(Source paravirt, std::uint16_t pm_timer_port) noexcept;

[[nodiscard]] std::uint64_t khz() noexcept;
[[nodiscard]] const char* source() noexcept;

/// What was measured between the boot CPU and another one.
struct Skew {
    std::int64_t ticks = 0;        ///< other CPU's counter minus the boot CPU's, at one moment
    std::uint64_t error_ticks = 0; ///< half of the shortest round trip: the true value is within
    bool measured = false;
};
[[nodiscard]] Skew skew_of(CpuId cpu) noexcept;

/// Both sides of the measurement; the boot CPU calls lead() while `cpu` runs follow(). Bounded: by `budget` (ns), of
/// which the best exchange so far is taken, and there is always one. To be called before the follower is started.
void skew_prepare() noexcept;
void skew_lead(CpuId cpu, Nanoseconds budget) noexcept;
void skew_follow(CpuId cpu) noexcept;

} // namespace spinkick::x86::tsc
