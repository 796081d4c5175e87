// SPDX-License-Identifier: BSD-2-Clause
//
// What a person reads after a run, without the manual: what ran where, the figures, the tests, and the verdict last.
#pragma once

#include <string>

#include "tools/results.hpp"

namespace spinkick::report {

enum class Colour : bool { off, on };

[[nodiscard]] std::string summary(const Results& results, Colour colour);

} // namespace spinkick::report
