// SPDX-License-Identifier: BSD-2-Clause
#include "tools/steal.hpp"

#include <charconv>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"

namespace spinkick::report {

std::optional<Steal> worst_steal(const std::vector<Json>& records) {
    std::optional<Steal> worst;
    for (const Json& record : records) {
        if (!is_type(record, "bench"))
            continue;
        const auto steal = number_in(record, "steal_ns");
        const auto duration = number_in(record, "duration_ns");
        const auto cpus = number_in(record, "cpus");
        if (!steal || !duration || !cpus || *duration == 0 || *cpus == 0)
            continue;
        const double part = static_cast<double>(*steal) / (static_cast<double>(*duration) * static_cast<double>(*cpus));
        if (worst && part <= worst->part)
            continue;
        const std::string backend = text_in(record, "backend");
        worst = Steal{part, fmt::format("{} of {}{}{}, repetition {}", printable(text_in(record, "bench")),
                                        printable(text_in(record, "lock")), backend.empty() ? "" : "/",
                                        printable(backend), number_in(record, "rep").value_or(0))};
    }
    return worst;
}

std::string text_of(const Steal& steal) { return fmt::format("{:.1f} % steal in {}", 100 * steal.part, steal.where); }

std::optional<double> steal_limit_in(const Json& context) {
    const auto host = context.find("host");
    if (host == context.end() || !host->is_object())
        return std::nullopt;
    const std::string text = text_in(*host, "steal_limit");
    double limit = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{limit} : std::nullopt;
}

} // namespace spinkick::report
