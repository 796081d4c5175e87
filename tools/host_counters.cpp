// SPDX-License-Identifier: BSD-2-Clause
#include "tools/host_counters.hpp"

#include <charconv>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"

namespace spinkick::report {

HostCounters parse_host_counters(std::string_view words) {
    HostCounters counters;
    while (true) {
        const auto begin = words.find_first_not_of(' ');
        if (begin == std::string_view::npos)
            return counters;
        words.remove_prefix(begin);
        const auto word = words.substr(0, words.find(' '));
        words.remove_prefix(word.size());
        const auto equals = word.find('=');
        std::uint64_t value = 0;
        const char* const end = word.data() + word.size();
        const auto parsed = equals == std::string_view::npos
                                ? std::from_chars_result{word.data(), std::errc::invalid_argument}
                                : std::from_chars(word.data() + equals + 1, end, value);
        if (equals == 0 || parsed.ec != std::errc{} || parsed.ptr != end)
            throw InputError(fmt::format("host counters: {}: NAME=NUMBER is wanted", word));
        counters[std::string(word.substr(0, equals))] = value;
    }
}

TestResult yields_for_each_kick(const std::vector<Json>& records, const HostCounters& host, const RunId& id) {
    TestResult result{
        .id = id, .name = "host.yields_for_each_kick", .status = Status::pass, .reason = {}, .ns = std::nullopt};
    const Json* hypercalls = nullptr;
    for (const auto& record : records)
        if (is_type(record, "hypercalls"))
            hypercalls = &record;
    const auto attempted = host.find("directed_yield_attempted");
    if (attempted == host.end()) {
        result.status = Status::error;
        result.reason = "the host's counters could not be read: no directed_yield_attempted";
        return result;
    }
    const auto kicks = hypercalls != nullptr ? number_in(*hypercalls, "kick_cpu") : std::nullopt;
    const auto yields = hypercalls != nullptr ? number_in(*hypercalls, "sched_yield") : std::nullopt;
    if (!kicks || !yields) {
        result.status = Status::skip;
        result.reason = "no hypercalls record: the guest has no KVM kick, or did not come to its end";
        return result;
    }
    if (*kicks + *yields == 0) {
        result.status = Status::skip;
        result.reason = "the guest made no kick and no yield by hypercall";
    } else if (attempted->second != *kicks + *yields) {
        result.status = Status::fail;
        result.reason =
            fmt::format("directed_yield_attempted is {} on the host for {} kicks and {} SCHED_YIELDs: {} for each "
                        "kick is wanted",
                        attempted->second, *kicks, *yields,
                        attempted->second < *kicks + *yields ? "one yield" : "no more than one yield");
    }
    return result;
}

} // namespace spinkick::report
