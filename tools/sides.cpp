// SPDX-License-Identifier: BSD-2-Clause
#include "tools/sides.hpp"

#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

/// Steal over all measurements of a side, as a part of the vCPUs' time.
std::optional<double> steal_of(const Results& results) {
    double steal = 0;
    double time = 0;
    for (const Json& record : results.records) {
        const auto ns = number_in(record, "steal_ns");
        const auto duration = number_in(record, "duration_ns");
        const auto cpus = number_in(record, "cpus");
        if (!is_type(record, "bench") || !ns || !duration || !cpus)
            continue;
        steal += static_cast<double>(*ns);
        time += static_cast<double>(*duration) * static_cast<double>(*cpus);
    }
    return time > 0 ? std::optional{steal / time} : std::nullopt;
}

} // namespace

std::size_t boots_in(const Results& results) {
    std::set<std::optional<std::uint32_t>> boots;
    for (const RunVerdict& run : results.runs)
        boots.insert(run.id.run);
    return boots.size();
}

std::string side_text(std::string_view side, const Results& results) {
    const std::size_t boots = boots_in(results);
    std::string out = fmt::format("{:<11} {} boot{}", side, boots, boots == 1 ? "" : "s");
    for (const Json& record : results.records)
        if (is_type(record, "context")) {
            out += fmt::format(" of spinkick {}, {}, on {}", printable(text_in(record, "version")),
                               printable(text_in(record, "compiler")), printable(text_in(record, "platform")));
            break;
        }
    if (const auto steal = steal_of(results))
        out += *steal > 0 ? fmt::format("; steal {:.1f}% of the vCPUs' time", *steal * 100) : "; no steal reported";
    if (results.word() != Word::PASS)
        out += fmt::format("; it ended with {}{}{}: figures of a run that did not pass may be anything",
                           name_of(results.word()), results.reason().empty() ? "" : ", ", printable(results.reason()));
    return out + "\n";
}

std::string differences_text(const Results& base, const Results& next) {
    // These differ from boot to boot, or are told elsewhere.
    static const std::set<std::string> kIgnored{"type", "run", "vm",   "ids",      "tsc_khz",
                                                "test", "rep", "seed", "platform", "timing"};
    const auto fields_of = [](const Results& results) {
        std::map<std::string, std::set<std::string>> fields;
        for (const Json& record : results.records)
            if (is_type(record, "context"))
                for (const auto& [key, value] : record.items())
                    if (!kIgnored.contains(key))
                        fields[key].insert(printable(value.is_string() ? value.get<std::string>() : value.dump()));
        return fields;
    };
    const auto joined = [](const std::set<std::string>& values) {
        constexpr std::size_t kLongest = 60;
        std::string text;
        for (const std::string& value : values)
            text += (text.empty() ? "" : " | ") + (value.size() > kLongest ? value.substr(0, kLongest) + "..." : value);
        return text.empty() ? std::string{"(not there)"} : text;
    };
    auto base_fields = fields_of(base);
    auto next_fields = fields_of(next);
    for (const auto& [key, values] : next_fields)
        base_fields.try_emplace(key);
    std::string out;
    for (const auto& [key, values] : base_fields)
        if (values != next_fields[key])
            out += fmt::format("{:<11} {}: {} -> {}\n", out.empty() ? "differs" : "", printable(key), joined(values),
                               joined(next_fields[key]));
    return out.empty() ? "differs     nothing that the context records know of\n" : out;
}

std::string_view emulation_text(bool emulated) noexcept { return emulated ? " (EMULATED time: ratios only)" : ""; }

} // namespace spinkick::report
