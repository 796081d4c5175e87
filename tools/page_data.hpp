// SPDX-License-Identifier: BSD-2-Clause
//
// What the page of `spinkick-report html` draws, as JSON: the verdict, what ran where, and for each place and
// configuration the figures of every lock. tools/page/page.js is its only reader.
#pragma once

#include "tools/results.hpp"

namespace spinkick::report {

[[nodiscard]] Json page_data(const Results& results);

} // namespace spinkick::report
