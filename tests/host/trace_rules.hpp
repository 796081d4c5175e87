// SPDX-License-Identifier: BSD-2-Clause
//
// The rules of the Chrome trace event format, as far as a file of ours uses it. A viewer that meets a breach draws
// something else, or nothing, without a word.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace spinkick::report {

struct TraceFacts {
    std::vector<std::string> breaches;
    std::map<std::string, std::size_t> slices; ///< by name
    std::map<std::string, std::size_t> arrows;
    std::set<std::pair<int, int>> tracks; ///< with a name
    std::size_t counters = 0;
};

template <class Json>
TraceFacts check_trace(const Json& file) {
    TraceFacts facts;
    const auto breach = [&](std::string text) { facts.breaches.push_back(std::move(text)); };
    if (!file.is_object() || !file.contains("traceEvents") || !file.at("traceEvents").is_array()) {
        breach("no array traceEvents");
        return facts;
    }
    struct Slice {
        double begin, end;
    };
    using Track = std::pair<int, int>;
    std::map<Track, std::vector<Slice>> slices;
    struct Flow {
        Track from, to;
        double begin = -1, end = -1;
        std::string name;
    };
    std::map<int, Flow> flows;
    for (const auto& event : file.at("traceEvents")) {
        const std::string text = event.dump();
        try {
            const auto name = event.at("name").template get<std::string>();
            const auto phase = event.at("ph").template get<std::string>();
            const Track track{event.at("pid").template get<int>(), event.at("tid").template get<int>()};
            const auto ts = event.at("ts").template get<double>();
            if (name.empty() || ts < 0)
                breach("no name, or a negative time: " + text);
            if (phase == "X") {
                const auto duration = event.at("dur").template get<double>();
                if (duration < 0)
                    breach("negative duration: " + text);
                slices[track].push_back({ts, ts + duration});
                ++facts.slices[name];
            } else if (phase == "s" || phase == "f") {
                auto& flow = flows[event.at("id").template get<int>()];
                if (!flow.name.empty() && flow.name != name)
                    breach("two names for one flow: " + text);
                flow.name = name;
                (phase == "s" ? flow.from : flow.to) = track;
                auto& at = phase == "s" ? flow.begin : flow.end;
                if (at >= 0)
                    breach("flow with two begins or two ends: " + text);
                at = ts;
                if (event.at("cat").template get<std::string>().empty() ||
                    (phase == "f" && event.at("bp").template get<std::string>() != "e"))
                    breach("a flow needs a category, and its end bp=e: " + text);
            } else if (phase == "C") {
                for (const auto& value : event.at("args"))
                    if (!value.is_number())
                        breach("a counter that is no number: " + text);
                ++facts.counters;
            } else if (phase == "M") {
                if (event.at("args").at("name").template get<std::string>().empty())
                    breach("no name: " + text);
                if (name == "thread_name")
                    facts.tracks.insert(track);
            } else {
                breach("unknown phase: " + text);
            }
        } catch (const nlohmann::json::exception& error) {
            breach(fmt::format("{}: {}", error.what(), text));
        }
    }
    constexpr double kRounding = 0.001; // times are microseconds with three digits
    for (auto& [track, list] : slices) {
        if (!facts.tracks.contains(track))
            breach(fmt::format("track {}/{} has no name", track.first, track.second));
        std::sort(list.begin(), list.end(), [](const Slice& a, const Slice& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
        });
        std::vector<Slice> open;
        for (const auto& slice : list) {
            while (!open.empty() && open.back().end <= slice.begin + kRounding)
                open.pop_back();
            if (!open.empty() && slice.end > open.back().end + kRounding)
                breach(fmt::format("track {}/{}: slices from {} and {} overlap", track.first, track.second,
                                   open.back().begin, slice.begin));
            open.push_back(slice);
        }
    }
    const auto in_slice = [&](const Track& track, double ts) {
        const auto& list = slices[track];
        return std::any_of(list.begin(), list.end(), [&](const Slice& slice) {
            return slice.begin <= ts + kRounding && ts <= slice.end + kRounding;
        });
    };
    for (const auto& [id, flow] : flows) {
        ++facts.arrows[flow.name];
        if (flow.begin < 0 || flow.end < 0)
            breach(fmt::format("flow {} has one end", id));
        else if (flow.end < flow.begin)
            breach(fmt::format("flow {} runs back in time", id));
        else if (!in_slice(flow.from, flow.begin) || !in_slice(flow.to, flow.end))
            breach(fmt::format("flow {} begins or ends outside every slice", id));
    }
    return facts;
}

} // namespace spinkick::report
