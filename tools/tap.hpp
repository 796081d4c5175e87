// SPDX-License-Identifier: BSD-2-Clause
//
// results.tap: the plan, every planned test once, and each measurement as a diagnostic before the test it belongs to.
#pragma once

#include <string>

#include "tools/results.hpp"

namespace spinkick::report {

[[nodiscard]] std::string to_tap(const Results& results);

} // namespace spinkick::report
