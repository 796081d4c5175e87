// SPDX-License-Identifier: BSD-2-Clause
//
// The page of `spinkick-report html`: one file with its style, its scripts and its data in it, which loads nothing.
#pragma once

#include <string>

#include "tools/results.hpp"

namespace spinkick::report {

/// Throws InputError if this program was built without the charting library.
[[nodiscard]] std::string page(const Results& results);

/// The text for an HTML `<script type="application/json">`: no `<` is left that could end the element.
[[nodiscard]] std::string json_for_script(const Json& json);

} // namespace spinkick::report
