// SPDX-License-Identifier: BSD-2-Clause
#include "tools/figures.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"
#include "tools/units.hpp"

namespace spinkick::report {

std::optional<Figure> figure_named(std::string_view name) noexcept {
    for (const FigureKind& kind : kFigureKinds)
        if (kind.name == name)
            return kind.figure;
    return std::nullopt;
}

std::string figure_names() {
    std::string names;
    for (const FigureKind& kind : kFigureKinds)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
    return names;
}

std::string human_value(double value, Unit unit) {
    switch (unit) {
    case Unit::rate:
        return human_count(value);
    case Unit::nanoseconds:
        return human_time(static_cast<std::uint64_t>(std::llround(std::max(0.0, value))));
    case Unit::index:
        return fmt::format("{:.3f}", value);
    case Unit::ratio:
        break;
    }
    return value > 0 ? fmt::format("{:.3g}", value) : "0";
}

std::optional<double> Place::overcommit() const noexcept {
    if (!cpus || !pcpus || *pcpus == 0)
        return std::nullopt;
    return static_cast<double>(*cpus * guests) / static_cast<double>(*pcpus);
}

std::string text_of(const Place& place) {
    std::string text = printable(place.bench);
    if (place.guests > 1)
        text += fmt::format(", {} guests of", place.guests);
    if (place.cpus)
        text += fmt::format("{} {} vCPUs", place.guests > 1 ? "" : ",", *place.cpus);
    if (place.pcpus)
        text += fmt::format(" on {} host CPU{}", *place.pcpus, *place.pcpus == 1 ? "" : "s");
    return text + ", " + printable(place.platform);
}

std::string lock_name(const std::string& lock, const std::string& backend) {
    return backend.empty() ? lock : lock + "/" + backend;
}

bool names_lock(std::string_view wanted, std::string_view lock) noexcept {
    return wanted == lock || (lock.starts_with(wanted) && lock.substr(wanted.size()).starts_with('/'));
}

Places::Places(const Results& results) {
    std::map<std::optional<std::uint32_t>, std::set<RunId>> vms;
    for (const RunVerdict& run : results.runs)
        vms[run.id.run].insert(run.id);
    for (const auto& [boot, ids] : vms)
        guests_[boot] = ids.size();
}

Place Places::of(const Json& record) {
    const RunId id = run_id_of(record);
    const std::string bench = text_in(record, "bench");
    Place place{bench,
                text_in(record, "platform"),
                text_in(record, "timing"),
                number_in(record, "cpus"),
                number_in(record, "pcpus"),
                1};
    if (const auto guests = guests_.find(id.run); guests != guests_.end())
        place.guests = guests->second;
    const auto last = last_.find({id, bench});
    if (!place.cpus && last != last_.end())
        return last->second;
    if (is_type(record, "bench"))
        last_[{id, bench}] = place;
    return place;
}

std::optional<double> kick_to_run_ns(const Json& bench, std::optional<std::uint64_t> tsc_khz) noexcept {
    const auto woken = number_in(bench, "pv_kick_wake");
    const auto ticks = number_in(bench, "pv_latency_wake");
    if (!woken || !ticks || !tsc_khz || *woken == 0 || *tsc_khz == 0)
        return std::nullopt;
    constexpr double kNanosecondsPerMillisecond = 1e6;
    return static_cast<double>(*ticks) / static_cast<double>(*woken) / static_cast<double>(*tsc_khz) *
           kNanosecondsPerMillisecond;
}

std::map<RunId, std::uint64_t> tsc_frequencies(const Results& results) {
    std::map<RunId, std::uint64_t> frequencies;
    for (const Json& record : results.records)
        if (const auto khz = number_in(record, "tsc_khz"); khz && is_type(record, "context"))
            frequencies[run_id_of(record)] = *khz;
    return frequencies;
}

namespace {
/// What a workload is there for.
Figure throughput_of(const Json& bench) {
    for (const Figure figure : {Figure::records_per_s, Figure::operations_per_s, Figure::jobs_per_min})
        if (bench.contains(kind_of(figure).name))
            return figure;
    return Figure::acquisitions_per_s;
}
} // namespace

Figures::Figures(const Results& results) {
    Places places(results);
    const auto frequencies = tsc_frequencies(results);
    for (const Json& record : results.records) {
        const bool is_bench = is_type(record, "bench");
        if (!is_bench && !is_type(record, "histogram"))
            continue;
        const Place place = places.of(record);
        const RunId run = run_id_of(record);
        const std::string lock = lock_name(text_in(record, "lock"), text_in(record, "backend"));
        const auto number = [&](const char* key) {
            const auto value = number_in(record, key);
            if (!value)
                missing_.push_back(fmt::format("{}{}, {}: no {} in a {} record", printable(place.bench),
                                               run.run ? fmt::format(", boot {}", *run.run) : "", printable(lock), key,
                                               is_bench ? "bench" : "histogram"));
            return value;
        };
        if (is_bench) {
            const auto repetition = number_in(record, "rep");
            const auto add_figure = [&](Figure figure, double value) {
                add({place, lock, figure}, {run.run, repetition, value});
            };
            const Figure throughput = throughput_of(record);
            if (const auto rate = number(std::string{kind_of(throughput).name}.c_str()))
                add_figure(throughput, static_cast<double>(*rate));
            if (const auto jain = number("jain_permille"))
                add_figure(Figure::jain, static_cast<double>(*jain) / 1000);
            const auto khz = frequencies.find(run);
            if (const auto ns =
                    kick_to_run_ns(record, khz == frequencies.end() ? std::nullopt : std::optional{khz->second}))
                add_figure(Figure::kick_to_run, *ns);
            const auto acquisitions = number("acquisitions");
            const auto halts = number("halts");
            const auto kicks = number("kicks");
            if (acquisitions && *acquisitions != 0) {
                const auto all = static_cast<double>(*acquisitions);
                if (halts)
                    add_figure(Figure::halts_per_acquisition, static_cast<double>(*halts) / all);
                if (kicks)
                    add_figure(Figure::kicks_per_acquisition, static_cast<double>(*kicks) / all);
            }
            continue;
        }
        const std::string what = text_in(record, "what");
        // A histogram of nothing has no percentiles: its zeros are no times.
        if ((what != "wait" && what != "handoff") || number_in(record, "count") == std::uint64_t{0})
            continue;
        const bool wait = what == "wait";
        if (const auto p50 = number("p50_ns"))
            add({place, lock, wait ? Figure::wait_p50 : Figure::handoff_p50},
                {run.run, std::nullopt, static_cast<double>(*p50)});
        if (const auto p99 = number("p99_ns"))
            add({place, lock, wait ? Figure::wait_p99 : Figure::handoff_p99},
                {run.run, std::nullopt, static_cast<double>(*p99)});
    }
}

void Figures::add(FigureId id, FigureValue value) {
    const auto [entry, is_new] = values_.try_emplace(id);
    if (is_new)
        ids_.push_back(std::move(id));
    entry->second.push_back(value);
}

const std::vector<FigureValue>& Figures::all(const FigureId& id) const {
    static const std::vector<FigureValue> kNone;
    const auto found = values_.find(id);
    return found == values_.end() ? kNone : found->second;
}

std::vector<double> Figures::values(const FigureId& id, Replicate replicate) const {
    using Key = std::pair<std::optional<std::uint32_t>, std::optional<std::uint64_t>>;
    std::vector<std::pair<Key, std::vector<double>>> groups;
    for (const FigureValue& value : all(id)) {
        const Key key{value.boot, replicate == Replicate::boot ? std::nullopt : value.repetition};
        auto group = std::find_if(groups.begin(), groups.end(), [&key](const auto& g) { return g.first == key; });
        if (group == groups.end())
            group = groups.insert(groups.end(), {key, {}});
        group->second.push_back(value.value);
    }
    std::vector<double> means;
    means.reserve(groups.size());
    for (const auto& [key, values] : groups)
        means.push_back(mean_of(values));
    return means;
}

} // namespace spinkick::report
