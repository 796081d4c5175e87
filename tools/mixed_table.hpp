// SPDX-License-Identifier: BSD-2-Clause
//
// bench.mixed: which of several locks are pounded, seen by nothing but how long was waited for each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

struct MixedRow {
    std::string lock;               ///< with its back end
    std::vector<double> per_second; ///< acquisitions of all its locks
    // Parts of the whole, one value for each repetition.
    std::vector<double> hot_acquisitions, hot_wait;
    std::vector<double> hot_wait_ns, cold_wait_ns; ///< mean of a wait
    std::size_t found = 0;                         ///< repetitions in which the hot lock was the pounded one
};

struct MixedBlock {
    Place place;
    std::vector<MixedRow> rows;
};

struct MixedTable {
    std::vector<MixedBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] MixedTable mixed_table(const Results& results);
[[nodiscard]] std::string text_of(const MixedTable& table);

} // namespace spinkick::report
