// SPDX-License-Identifier: BSD-2-Clause
//
// Walks the schedules of one scenario: all of them, all with few preemptions, random ones, or a given one.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tests/host/checker/simulation.hpp"

namespace spinkick::checker {

struct Limits {
    static constexpr unsigned kNoBound = std::numeric_limits<unsigned>::max();

    unsigned preemptions = kNoBound;
    std::uint64_t states = 20'000'000;
    double seconds = 1e9; ///< of this process's CPU time
};

struct Coverage {
    std::uint64_t schedules = 0; ///< paths to an end or to a state known already
    std::uint64_t states = 0;
    std::uint64_t steps = 0;
    std::uint64_t ends = 0;    ///< different states in which all CPUs are done
    std::uint64_t longest = 0; ///< steps of the longest path
    bool complete = true;      ///< no limit but the preemption bound has cut it short
    std::string failure;       ///< empty: none
    Choices schedule;          ///< that fails
};

/// Every state that is reachable within the limits, once.
[[nodiscard]] Coverage explore_all(Simulation& simulation, const Limits& limits);

/// Seeded random schedules, each to its end.
[[nodiscard]] Coverage explore_random(Simulation& simulation, std::uint64_t seed, std::uint64_t schedules,
                                      double seconds);

/// One schedule, printed. Choices beyond its end are taken first come first.
[[nodiscard]] Coverage replay(Simulation& simulation, const Choices& schedule);

/// CPU time of this process.
[[nodiscard]] double cpu_seconds();

} // namespace spinkick::checker
