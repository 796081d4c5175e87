// SPDX-License-Identifier: BSD-2-Clause
//
// bench.micro in the layout that the PV qspinlock series published: tasks down; for the ticket and the queued lock the
// time with PV off, with PV on, and the change.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

/// One lock at one number of tasks.
struct MicroCell {
    std::vector<double> ms;    ///< until all pairs were done, one value for each repetition
    bool extrapolated = false; ///< from a part of the pairs: the time was up
};

struct MicroRow {
    Place place; ///< its CPUs are the tasks
    MicroCell ticket, pv_ticket, queued, pv_queued;
};

/// Runs on machines that may stand side by side, with the PV locks of one back end.
struct MicroBlock {
    std::string backend; ///< of the PV locks; empty: none ran
    std::uint64_t pairs = 0;
    std::vector<MicroRow> rows; ///< by tasks
};

struct MicroTable {
    std::vector<MicroBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] MicroTable micro_table(const Results& results);
[[nodiscard]] std::string text_of(const MicroTable& table);

/// All locks that ran, tasks across: for a summary. Empty if bench.micro did not run.
[[nodiscard]] std::string micro_overview(const Results& results);

} // namespace spinkick::report
