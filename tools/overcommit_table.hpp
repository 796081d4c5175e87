// SPDX-License-Identifier: BSD-2-Clause
//
// One figure under overcommit, in the layout that yield_to patches are published in: base, stdev, patched, stdev and
// %improve, a row for each number of vCPUs per host CPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

struct OvercommitRow {
    Place place; ///< of both sides
    std::string base_lock, next_lock;
    std::vector<double> base, next;
    std::optional<double> improvement; ///< relative to base; above zero is better, or more where neither is
};

struct OvercommitTable {
    Figure figure = Figure::acquisitions_per_s;
    std::vector<OvercommitRow> rows; ///< by lock, in the image's order, and factor
    std::vector<std::string> problems;
};

/// The same locks in two sets of results; only those of `locks`, if there are any.
[[nodiscard]] OvercommitTable overcommit_of_results(const Results& base, const Results& next, Figure figure,
                                                    const std::vector<std::string>& locks);
/// Two locks in one set of results.
[[nodiscard]] OvercommitTable overcommit_of_locks(const Results& results, Figure figure, const std::string& base_lock,
                                                  const std::string& next_lock);

[[nodiscard]] std::string overcommit_text(const OvercommitTable& table);

} // namespace spinkick::report
