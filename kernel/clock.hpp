// SPDX-License-Identifier: BSD-2-Clause
//
// Time for the portable part: nanoseconds since boot that never run backwards, on any CPU. Measurements between two
// events of one CPU use TSC ticks (arch/x86/tsc.hpp) and convert afterwards.
#pragma once

#include "kernel/types.hpp"

namespace spinkick::clock {

/// Nanoseconds since the kernel was entered. Monotonic over all CPUs: a CPU whose TSC lags gets the latest value anyone
/// saw.
[[nodiscard]] Nanoseconds now() noexcept;
/// A span of TSC ticks as nanoseconds, by the measured frequency.
[[nodiscard]] Nanoseconds to_nanoseconds(Tsc ticks) noexcept;
[[nodiscard]] Tsc to_ticks(Nanoseconds ns) noexcept;

/// A point in time that a bounded wait looks at: while (!done && !deadline.passed()) relax();
class Deadline {
  public:
    explicit Deadline(Nanoseconds from_now) noexcept : end_(now() + from_now) {}
    [[nodiscard]] bool passed() const noexcept { return now() >= end_; }

  private:
    Nanoseconds end_;
};

} // namespace spinkick::clock
