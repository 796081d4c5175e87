// SPDX-License-Identifier: BSD-2-Clause
//
// Numbers as a person reads them: three significant digits and the unit beside them.
#pragma once

#include <cstdint>
#include <string>

namespace spinkick::report {

/// Without a unit: 0.52, 13.5, 7736
[[nodiscard]] std::string three_digits(double value);
/// 850ns, 12.3us, 1.20ms, 42.0s
[[nodiscard]] std::string human_time(std::uint64_t ns);
/// 8512, 85.1k, 8.51M
[[nodiscard]] std::string human_count(double count);
/// A part as a change in percent: +11.8, -0.3, +0.0
[[nodiscard]] std::string human_change(double part);

} // namespace spinkick::report
