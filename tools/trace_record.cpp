// SPDX-License-Identifier: BSD-2-Clause
#include "tools/trace_record.hpp"

#include <map>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

/// Json alone would take 6e98 for a number of 64 bits, which is undefined.
std::uint64_t whole_number(const Json& value) {
    if (!value.is_number_integer() || value < 0)
        throw InputError("a number from 0 is wanted");
    return value.get<std::uint64_t>();
}

/// Throws Json's exceptions or InputError for a record of another shape.
TraceTrack track_of(const Json& record) {
    TraceTrack track;
    track.cpu = whole_number(record.at("cpu"));
    track.lost = whole_number(record.at("lost"));
    const auto kinds = record.at("kinds").get<std::vector<std::string>>();
    for (const auto& item : record.at("events")) {
        const auto kind = whole_number(item.at(1));
        if (kind >= kinds.size())
            throw InputError(fmt::format("event kind {} of {}", kind, kinds.size()));
        track.events.push_back({whole_number(item.at(0)), kinds[kind], whole_number(item.at(2))});
    }
    for (const auto& item : record.at("steal"))
        track.steal.emplace_back(whole_number(item.at(0)), whole_number(item.at(1)));
    return track;
}

std::optional<EarlyWaits> early_waits_of(const Json& record) {
    const auto by_state = number_in(record, "early_by_state");
    const auto by_flag = number_in(record, "early_by_flag");
    if (!by_state || !by_flag)
        return std::nullopt;
    return EarlyWaits{text_in(record, "wait_early"), *by_state, *by_flag};
}

} // namespace

std::string TracedRun::name() const {
    const auto run = text_of(id);
    return fmt::format("{}{}{} ({}, {})", lock, run.empty() ? "" : ", ", run, platform, timing);
}

Traced traced_runs(const Results& results) {
    Traced traced;
    std::map<std::pair<RunId, std::string>, TracedRun> runs; // by run, test and lock
    for (const auto& record : results.records) {
        if (!is_type(record, "trace"))
            continue;
        try {
            auto track = track_of(record);
            const auto id = run_id_of(record);
            const auto lock =
                fmt::format("{}/{}", record.at("lock").get<std::string>(), record.at("backend").get<std::string>());
            auto& run = runs[{id, record.value("test", "") + " " + lock}];
            run.id = id;
            run.lock = lock;
            run.platform = record.value("platform", "unknown platform");
            run.timing = record.value("timing", "timing unknown");
            run.early = early_waits_of(record);
            run.tracks.push_back(std::move(track));
        } catch (const Json::exception&) {
            ++traced.unreadable;
        } catch (const InputError&) {
            ++traced.unreadable;
        }
    }
    for (auto& [key, run] : runs)
        traced.runs.push_back(std::move(run));
    return traced;
}

} // namespace spinkick::report
