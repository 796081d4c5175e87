// SPDX-License-Identifier: BSD-2-Clause
//
// `trace` records (docs/report-format.md) as the events of each CPU, for what is made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report {

struct TraceEvent {
    std::uint64_t ns = 0; ///< since the start of the test
    std::string kind;     ///< wants, queued, halts, wakes, acquired, releases, kicks, kicked
    std::uint64_t argument = 0;
};

/// What one record holds.
struct TraceTrack {
    std::uint64_t cpu = 0;
    std::uint64_t lost = 0;                                     ///< events before the first one
    std::vector<TraceEvent> events;                             ///< in the order of its CPU
    std::vector<std::pair<std::uint64_t, std::uint64_t>> steal; ///< ns, steal time
};

/// When a queued waiter halts early, and how `halts` says that one did: of locks that do.
struct EarlyWaits {
    std::string policy;                      ///< off, state, preempted
    std::uint64_t by_state = 0, by_flag = 0; ///< arguments of `halts`
};

/// All tracks of one lock in one test of one run.
struct TracedRun {
    RunId id;
    std::string lock; ///< with its back end
    std::string platform, timing;
    std::optional<EarlyWaits> early;
    std::vector<TraceTrack> tracks;

    [[nodiscard]] std::string name() const;
};

struct Traced {
    std::vector<TracedRun> runs;
    std::size_t unreadable = 0; ///< records of another shape, left out
};

[[nodiscard]] Traced traced_runs(const Results& results);

} // namespace spinkick::report
