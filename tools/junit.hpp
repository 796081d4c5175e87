// SPDX-License-Identifier: BSD-2-Clause
//
// junit.xml, valid for the schema of Jenkins' xUnit plugin (junit-10.xsd): one testsuite per suite of the image, the
// measurements of a test as its system-out, and a testcase `run.verdict` for a run that ended otherwise than its tests
// say.
#pragma once

#include <string>

#include "tools/results.hpp"

namespace spinkick::report {

[[nodiscard]] std::string to_junit(const Results& results);

} // namespace spinkick::report
