// SPDX-License-Identifier: BSD-2-Clause
//
// The measurements as one table for each benchmark: locks down, figures across. Runs on different platforms, with
// different numbers of CPUs, or one emulated and one real, never share a row or a table.
#pragma once

#include <string>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report {

/// All tables but those of workloads with a layout of their own, with the lines that explain them; empty if nothing was
/// measured.
[[nodiscard]] std::string bench_tables(const std::vector<Json>& records);

} // namespace spinkick::report
