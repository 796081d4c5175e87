// SPDX-License-Identifier: BSD-2-Clause
//
// The console of the host tests: keeps the lines.
#pragma once

#include <string>
#include <vector>

namespace spinkick::test {

/// Lines written since the last call; forgets them.
std::vector<std::string> take_console_lines();

} // namespace spinkick::test
