// SPDX-License-Identifier: BSD-2-Clause
//
// Reads the slow-path counters of all CPUs. They are written by their own CPUs only and never reset: an interval is a
// difference.
#pragma once

#include <array>
#include <cstdint>

#include "kernel/machine.hpp"
#include "kernel/sync/events.hpp"

namespace spinkick::counters {

/// Sum over all online CPUs. Exact for what happened before; counts of CPUs that run on meanwhile may or may not be in.
[[nodiscard]] inline std::uint64_t total(sync::LockEvent event) noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        sum += machine::lock_event(machine::online_cpu(n), event);
    return sum;
}

/// All counters at one time.
struct Snapshot {
    std::array<std::uint64_t, sync::kLockEvents> values{};

    [[nodiscard]] static Snapshot take() noexcept {
        Snapshot s;
        for (std::size_t i = 0; i < s.values.size(); ++i)
            s.values[i] = total(static_cast<sync::LockEvent>(i));
        return s;
    }
    [[nodiscard]] std::uint64_t operator[](sync::LockEvent event) const noexcept {
        return values[static_cast<std::size_t>(event)];
    }
    /// What was counted between `earlier` and this.
    [[nodiscard]] Snapshot since(const Snapshot& earlier) const noexcept {
        Snapshot s;
        for (std::size_t i = 0; i < s.values.size(); ++i)
            s.values[i] = values[i] - earlier.values[i];
        return s;
    }
};

} // namespace spinkick::counters
