// SPDX-License-Identifier: BSD-2-Clause
//
// bench.jobs in the layout that the PV qspinlock series published for AIM7: locks down; jobs a minute, the change
// against the PV ticket lock, and real, sys and usr time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

struct JobsRow {
    std::string lock; ///< with its back end
    // One value for each repetition, times for all of the jobs.
    std::vector<double> per_minute, real_ns, sys_ns, usr_ns;
    std::vector<double> slow;     ///< part of the CPUs' time in the slow path
    bool extrapolated = false;    ///< from a part of the jobs: the time was up
    std::optional<double> change; ///< of per_minute, relative to the PV ticket lock
};

/// One load on one machine, with the PV locks of one back end.
struct JobsBlock {
    Place place;         ///< its bench is jobs_light, jobs_moderate or jobs_heavy
    std::string backend; ///< of the PV locks; empty: none ran
    std::uint64_t jobs = 0;
    double slow_wanted = 0;
    std::vector<JobsRow> rows; ///< the published ones first
};

struct JobsTable {
    std::vector<JobsBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] JobsTable jobs_table(const Results& results);
[[nodiscard]] std::string text_of(const JobsTable& table);

} // namespace spinkick::report
