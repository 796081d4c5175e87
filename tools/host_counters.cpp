// SPDX-License-Identifier: BSD-2-Clause
#include "tools/host_counters.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "tools/figures.hpp"
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

HostSyncs parse_host_syncs(std::string_view text, const std::string& source) {
    HostSyncs syncs;
    for (int number = 1; !text.empty(); ++number) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        std::uint32_t point = 0;
        const char* const end = line.data() + line.size();
        const auto parsed = std::from_chars(line.data(), end, point);
        if (parsed.ec != std::errc{} || (parsed.ptr != end && *parsed.ptr != ' '))
            throw InputError(fmt::format("{}: line {}: the number of a sync point is wanted first", source, number));
        try {
            syncs[point] = parse_host_counters(line.substr(static_cast<std::size_t>(parsed.ptr - line.data())));
        } catch (const InputError& error) {
            throw InputError(fmt::format("{}: line {}: {}", source, number, error.what()));
        }
    }
    return syncs;
}

HostSyncs read_host_syncs(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    if (!file || !(file.peek() == std::ifstream::traits_type::eof() || text << file.rdbuf()))
        throw InputError(fmt::format("{}: cannot be read", path.string()));
    return parse_host_syncs(text.str(), path.string());
}

void add_host_counters(Json& record, const HostSyncs& syncs) {
    const auto point = [&](const char* key) {
        const auto number = number_in(record, key);
        return !number || *number > UINT32_MAX ? syncs.end() : syncs.find(static_cast<std::uint32_t>(*number));
    };
    const auto begin = point("sync_begin"), end = point("sync_end");
    if (begin == syncs.end() || end == syncs.end())
        return;
    for (const auto& [name, value] : end->second)
        if (const auto before = begin->second.find(name);
            before != begin->second.end() && before->second <= value) // they only grow
            record["host_" + name] = value - before->second;
}

TestResult same_counts_between_syncs(const std::vector<Json>& records, const RunId& id) {
    TestResult result{
        .id = id, .name = "host.same_counts_between_syncs", .status = Status::skip, .reason = {}, .ns = std::nullopt};
    std::size_t compared = 0, without = 0;
    bool any_asked = false; // the guest had an answer at both ends, so the host has read something
    for (const auto& record : records) {
        if (!is_type(record, "bench"))
            continue;
        any_asked = any_asked || record.contains("sync_end");
        const auto yields = number_in(record, "host_directed_yield_attempted");
        const auto host_halts = number_in(record, "host_halt_exits");
        if (!yields || !host_halts) {
            ++without;
            continue;
        }
        ++compared;
        const auto asked =
            number_in(record, "kvm_kick_cpu").value_or(0) + number_in(record, "kvm_sched_yield").value_or(0);
        const auto halts = number_in(record, "halts").value_or(0);
        if (result.status == Status::fail || (*yields == asked && *host_halts >= halts))
            continue;
        result.status = Status::fail;
        const std::string where = fmt::format("{} of {}, repetition {}", text_in(record, "bench"),
                                              lock_name(text_in(record, "lock"), text_in(record, "backend")),
                                              number_in(record, "rep").value_or(0));
        result.reason = *yields != asked
                            ? fmt::format("{}: directed_yield_attempted grew by {} on the host for {} kicks and "
                                          "SCHED_YIELDs of the guest",
                                          where, *yields, asked)
                            : fmt::format("{}: halt_exits grew by {} on the host, below the {} halts of the guest",
                                          where, *host_halts, halts);
    }
    if (result.status == Status::fail)
        return result;
    if (without != 0 && any_asked) {
        result.status = Status::error;
        result.reason = fmt::format("{} of {} measurements have no counters of the host", without, without + compared);
    } else if (compared != 0) {
        result.status = Status::pass;
    } else {
        result.reason = "no measurement lies between two sync points";
    }
    return result;
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
