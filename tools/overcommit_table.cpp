// SPDX-License-Identifier: BSD-2-Clause
#include "tools/overcommit_table.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "tools/sides.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/units.hpp"

namespace spinkick::report {
namespace {

void put(OvercommitTable& table, std::string problem) {
    if (std::find(table.problems.begin(), table.problems.end(), problem) == table.problems.end())
        table.problems.push_back(std::move(problem));
}

/// False, with a word about it, for figures without a number of host CPUs.
bool has_factor(OvercommitTable& table, const Place& place) {
    if (place.overcommit())
        return true;
    put(table, fmt::format("{}: the records have no pcpus, so no overcommit: run-qemu.sh --pcpus N", text_of(place)));
    return false;
}

void add_row(OvercommitTable& table, OvercommitRow row) {
    const double base = mean_of(row.base);
    if (base > 0) {
        const double change = mean_of(row.next) / base - 1;
        row.improvement = kind_of(table.figure).better == Better::lower ? -change : change;
    }
    table.rows.push_back(std::move(row));
}

/// Locks in the order of the image, each by bench, platform and factor.
void sort_rows(OvercommitTable& table) {
    std::vector<std::string> locks;
    for (const OvercommitRow& row : table.rows)
        if (std::find(locks.begin(), locks.end(), row.base_lock) == locks.end())
            locks.push_back(row.base_lock);
    const auto order = [&locks](const OvercommitRow& row) {
        return std::tuple{row.place.bench,
                          row.place.platform,
                          row.place.timing,
                          std::find(locks.begin(), locks.end(), row.base_lock) - locks.begin(),
                          row.place.overcommit().value_or(0),
                          row.place.cpus,
                          row.place.guests};
    };
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [&order](const OvercommitRow& a, const OvercommitRow& b) { return order(a) < order(b); });
}

std::string value_text(const std::vector<double>& values, Unit unit) { return human_value(mean_of(values), unit); }

std::string deviation_text(const std::vector<double>& values, Unit unit) {
    const auto deviation = deviation_of(values);
    return deviation ? human_value(*deviation, unit) : "-";
}

std::string vcpus_text(const Place& place) {
    return fmt::format("{}{} on {}", place.guests > 1 ? fmt::format("{} x ", place.guests) : "", place.cpus.value_or(0),
                       place.pcpus.value_or(0));
}

} // namespace

OvercommitTable overcommit_of_results(const Results& base_results, const Results& next_results, Figure figure,
                                      const std::vector<std::string>& locks) {
    OvercommitTable table;
    table.figure = figure;
    const Figures base(base_results);
    const Figures next(next_results);
    const auto is_wanted = [&](const FigureId& id) {
        return id.figure == figure &&
               (locks.empty() ||
                std::any_of(locks.begin(), locks.end(), [&id](const auto& lock) { return names_lock(lock, id.lock); }));
    };
    std::size_t wanted = 0;
    for (const FigureId& id : base.ids()) {
        if (!is_wanted(id))
            continue;
        ++wanted;
        if (!has_factor(table, id.place))
            continue;
        if (!next.has(id)) {
            put(table, fmt::format("patched has no {} of {} ({})", kind_of(figure).text, printable(id.lock),
                                   text_of(id.place)));
            continue;
        }
        add_row(table, {id.place,
                        id.lock,
                        id.lock,
                        base.values(id, Replicate::repetition),
                        next.values(id, Replicate::repetition),
                        {}});
    }
    for (const FigureId& id : next.ids())
        if (is_wanted(id) && !base.has(id))
            put(table,
                fmt::format("base has no {} of {} ({})", kind_of(figure).text, printable(id.lock), text_of(id.place)));
    if (wanted == 0)
        put(table, fmt::format("base has no {} of the locks that are asked for", kind_of(figure).text));
    sort_rows(table);
    return table;
}

OvercommitTable overcommit_of_locks(const Results& results, Figure figure, const std::string& base_lock,
                                    const std::string& next_lock) {
    OvercommitTable table;
    table.figure = figure;
    const Figures figures(results);
    const auto named = [&figures](const std::string& wanted) {
        std::vector<std::string> names;
        for (const FigureId& id : figures.ids())
            if (names_lock(wanted, id.lock) && std::find(names.begin(), names.end(), id.lock) == names.end())
                names.push_back(id.lock);
        return names;
    };
    std::vector<std::string> locks;
    for (const std::string& wanted : {base_lock, next_lock}) {
        const auto names = named(wanted);
        if (names.size() == 1) {
            locks.push_back(names.front());
            continue;
        }
        std::string all;
        for (const std::string& name : names)
            all += " " + printable(name);
        put(table, names.empty() ? fmt::format("no figures of a lock {}", printable(wanted))
                                 : fmt::format("--lock {}: which of{}?", printable(wanted), all));
    }
    if (locks.size() != 2)
        return table;
    std::set<Place> places;
    for (const FigureId& id : figures.ids())
        if (id.figure == figure && (id.lock == locks[0] || id.lock == locks[1]))
            places.insert(id.place);
    for (const Place& place : places) {
        const FigureId base{place, locks[0], figure};
        const FigureId next{place, locks[1], figure};
        if (!has_factor(table, place))
            continue;
        if (!figures.has(base) || !figures.has(next)) {
            put(table, fmt::format("no {} of {} ({})", kind_of(figure).text,
                                   printable(figures.has(base) ? locks[1] : locks[0]), text_of(place)));
            continue;
        }
        add_row(table, {place,
                        locks[0],
                        locks[1],
                        figures.values(base, Replicate::repetition),
                        figures.values(next, Replicate::repetition),
                        {}});
    }
    if (table.rows.empty())
        put(table, fmt::format("no {} of {} and {} at the same place", kind_of(figure).text, printable(locks[0]),
                               printable(locks[1])));
    sort_rows(table);
    return table;
}

std::string overcommit_text(const OvercommitTable& table) {
    const FigureKind& kind = kind_of(table.figure);
    const bool is_judged = kind.better != Better::neither;
    std::string out;
    for (std::size_t begin = 0; begin < table.rows.size();) {
        const Place& place = table.rows[begin].place;
        const auto is_same = [&place](const OvercommitRow& row) {
            return row.place.bench == place.bench && row.place.platform == place.platform &&
                   row.place.timing == place.timing;
        };
        TextTable lines({"lock/back end", "overcommit", "vCPUs", "base", "stdev", "patched", "stdev",
                         is_judged ? "%improve" : "%change", ""},
                        3);
        std::string last;
        std::size_t row = begin;
        for (; row < table.rows.size() && is_same(table.rows[row]); ++row) {
            const OvercommitRow& r = table.rows[row];
            const std::string name =
                printable(r.base_lock) + (r.base_lock == r.next_lock ? "" : " -> " + printable(r.next_lock));
            lines.add({name == last ? "" : name, fmt::format("{:.3g}x", r.place.overcommit().value_or(0)),
                       vcpus_text(r.place), value_text(r.base, kind.unit), deviation_text(r.base, kind.unit),
                       value_text(r.next, kind.unit), deviation_text(r.next, kind.unit),
                       r.improvement ? human_change(*r.improvement) : "-", ""});
            last = name;
        }
        out += fmt::format("{}, {}{}, on {}{}\n{}\n", printable(place.bench), kind.text,
                           kind.better == Better::higher  ? " (more is better)"
                           : kind.better == Better::lower ? " (less is better)"
                                                          : "",
                           printable(place.platform), emulation_text(place.emulated()), lines.text());
        begin = row;
    }
    if (!table.rows.empty())
        out +=
            "  base, patched: means over the repetitions (waits and handoffs: over the boots) with their standard\n"
            "  deviations. overcommit: vCPUs of all guests for each host CPU. Whether a difference is more than noise\n"
            "  is what `spinkick-report compare` says.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
