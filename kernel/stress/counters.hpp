// SPDX-License-Identifier: BSD-2-Clause
//
// Reads the slow-path counters and the blocked times, of one CPU or of all. They are written by their own CPUs only and
// never reset: an interval is a difference. So whoever wants counters that begin at zero takes a Reader, and several
// readers do not disturb each other.
//
// A reset loses nothing: each raw counter is read once, and that one value both ends the old interval and begins the
// new one. What is counted meanwhile is in the value, and so in the old interval, or it is not, and so in the new one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/machine.hpp"
#include "kernel/sync/blocked_time.hpp"
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
    sync::BlockedTimes blocked{};

    /// Of one CPU.
    [[nodiscard]] static Snapshot take(CpuId cpu) noexcept {
        Snapshot s;
        s.add(cpu);
        return s;
    }
    /// Of all online CPUs together.
    [[nodiscard]] static Snapshot take() noexcept {
        Snapshot s;
        for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
            s.add(machine::online_cpu(n));
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
        for (std::size_t i = 0; i < sync::BlockedTimes::kBuckets; ++i)
            s.blocked.buckets[i] = blocked.buckets[i] - earlier.blocked.buckets[i];
        return s;
    }

  private:
    void add(CpuId cpu) noexcept {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] += machine::lock_event(cpu, static_cast<sync::LockEvent>(i));
        for (std::size_t i = 0; i < sync::BlockedTimes::kBuckets; ++i)
            blocked.buckets[i] += machine::blocked_waits(cpu, i);
    }
};

/// Counters that can be set to zero, for one reader. Starts with what was counted since boot.
class Reader {
  public:
    /// Of all CPUs together, or of one.
    constexpr Reader() noexcept = default;
    explicit constexpr Reader(CpuId cpu) noexcept : cpu_(cpu) {}

    /// What was counted since the last reset.
    [[nodiscard]] Snapshot read() const noexcept { return now().since(base_); }
    /// The same, and the next interval begins.
    Snapshot reset() noexcept {
        const Snapshot ends = now();
        const Snapshot counted = ends.since(base_);
        base_ = ends;
        return counted;
    }

  private:
    [[nodiscard]] Snapshot now() const noexcept { return cpu_ ? Snapshot::take(*cpu_) : Snapshot::take(); }

    std::optional<CpuId> cpu_;
    Snapshot base_{};
};

} // namespace spinkick::counters
