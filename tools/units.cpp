// SPDX-License-Identifier: BSD-2-Clause
#include "tools/units.hpp"

#include <cmath>

#include <fmt/format.h>

namespace spinkick::report {
std::string three_digits(double value) {
    // The limits are where rounding would give a fourth digit.
    if (value < 9.995)
        return fmt::format("{:.2f}", value);
    return value < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string human_time(std::uint64_t ns) {
    const auto value = static_cast<double>(ns);
    if (ns < 1'000)
        return fmt::format("{}ns", ns);
    if (value < 999.5e3)
        return three_digits(value / 1e3) + "us";
    if (value < 999.5e6)
        return three_digits(value / 1e6) + "ms";
    return value < 999.5e9 ? three_digits(value / 1e9) + "s" : fmt::format("{:.0f}s", value / 1e9);
}

std::string human_count(double count) {
    if (count < 9'999.5)
        return fmt::format("{:.0f}", count);
    if (count < 999.5e3)
        return three_digits(count / 1e3) + "k";
    if (count < 999.5e6)
        return three_digits(count / 1e6) + "M";
    return count < 999.5e9 ? three_digits(count / 1e9) + "G" : fmt::format("{:.3g}", count);
}

std::string human_change(double part) {
    const double rounded = std::round(part * 1000) / 10;
    return fmt::format("{:+.1f}", rounded + 0.0); // no "-0.0"
}

} // namespace spinkick::report
