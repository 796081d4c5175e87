// SPDX-License-Identifier: BSD-2-Clause
//
// bench.io: operations a second for each lock, in the order of the report that asked what Xen's PV spinlocks cost an
// I/O-heavy guest: the debug lock, which has no PV path; the byte lock, which has one; spinning locks without it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

struct IoRow {
    std::string lock; ///< with its back end
    std::vector<double> per_second;
    // For each operation.
    std::vector<double> halts, kicks, interrupts;
    std::optional<double> change; ///< of per_second, relative to the debug lock
};

struct IoBlock {
    Place place;
    std::vector<IoRow> rows;
};

struct IoTable {
    std::vector<IoBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] IoTable io_table(const Results& results);
[[nodiscard]] std::string text_of(const IoTable& table);

} // namespace spinkick::report
