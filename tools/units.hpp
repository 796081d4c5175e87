// SPDX-License-Identifier: BSD-2-Clause
//
// Numbers as a person reads them: three significant digits and the unit beside them.
#pragma once

#include <cstdint>
#include <string>

namespace spinkick::report {

/// 850ns, 12.3us, 1.20ms, 42.0s
[[nodiscard]] std::string human_time(std::uint64_t ns);
/// 8512, 85.1k, 8.51M
[[nodiscard]] std::string human_count(double count);

} // namespace spinkick::report
