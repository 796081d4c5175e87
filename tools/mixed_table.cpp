// SPDX-License-Identifier: BSD-2-Clause
#include "tools/mixed_table.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tools/sides.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/units.hpp"
#include "tools/workload.hpp"

namespace spinkick::report {
namespace {

/// Acquisitions of a lock and the time waited for it.
using PerLock = std::pair<double, double>;

/// Nothing if the list is not there or is none of pairs.
std::optional<std::vector<PerLock>> locks_of(const Json& record) {
    const auto list = record.find("locks");
    if (list == record.end() || !list->is_array())
        return std::nullopt;
    std::vector<PerLock> locks;
    for (const Json& entry : *list) {
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer() || !entry[1].is_number_integer())
            return std::nullopt;
        locks.emplace_back(entry[0].get<double>(), entry[1].get<double>());
    }
    return locks;
}

/// False: the record is none.
bool add(MixedRow& row, const Json& record) {
    const auto locks = locks_of(record);
    const auto hot = number_in(record, "hot");
    const auto rate = number_in(record, "acquisitions_per_s");
    if (!locks || !hot || !rate || *hot >= locks->size())
        return false;
    PerLock all{0, 0};
    for (const auto& [acquisitions, wait] : *locks)
        all = {all.first + acquisitions, all.second + wait};
    const PerLock& of_hot = (*locks)[*hot];
    const PerLock cold{all.first - of_hot.first, all.second - of_hot.second};
    const auto part = [](double of, double whole) { return whole > 0 ? of / whole : 0; };
    row.per_second.push_back(static_cast<double>(*rate));
    row.hot_acquisitions.push_back(part(of_hot.first, all.first));
    row.hot_wait.push_back(part(of_hot.second, all.second));
    row.hot_wait_ns.push_back(part(of_hot.second, of_hot.first));
    row.cold_wait_ns.push_back(part(cold.second, cold.first));
    row.found += number_in(record, "pounded") == hot ? 1u : 0u;
    return true;
}

} // namespace

MixedTable mixed_table(const Results& results) {
    MixedTable table;
    for (const auto& [place, group] :
         grouped(workload_records(results, "mixed"), [](const WorkloadRecord& record) { return record.place; })) {
        MixedBlock block{place, {}};
        for (const WorkloadRecord& record : group) {
            const std::string name = lock_name(record.lock, record.backend);
            auto row =
                std::find_if(block.rows.begin(), block.rows.end(), [&](const auto& r) { return r.lock == name; });
            if (row == block.rows.end())
                row = block.rows.insert(block.rows.end(), MixedRow{name, {}, {}, {}, {}, {}, 0});
            if (!add(*row, *record.record))
                table.problems.push_back(
                    fmt::format("no hot lock in a record of {} ({})", printable(name), text_of(place)));
        }
        table.blocks.push_back(std::move(block));
    }
    if (table.blocks.empty())
        table.problems.emplace_back("no figures of bench.mixed: --append tests=bench.mixed");
    return table;
}

std::string text_of(const MixedTable& table) {
    std::string out;
    for (const MixedBlock& block : table.blocks) {
        TextTable lines({"lock/back end", "acquisitions/s", "stdev", "hot: % of them", "% of waiting", "wait",
                         "cold: wait", "pounded", ""},
                        1);
        for (const MixedRow& row : block.rows) {
            if (row.per_second.empty())
                continue;
            const auto deviation = deviation_of(row.per_second);
            const auto percent = [](const std::vector<double>& parts) { return three_digits(100 * mean_of(parts)); };
            const auto time = [](const std::vector<double>& ns) { return human_value(mean_of(ns), Unit::nanoseconds); };
            lines.add({printable(row.lock), human_count(mean_of(row.per_second)),
                       deviation ? human_count(*deviation) : "-", percent(row.hot_acquisitions), percent(row.hot_wait),
                       time(row.hot_wait_ns), time(row.cold_wait_ns),
                       fmt::format("{} of {}", row.found, row.per_second.size()), ""});
        }
        out += fmt::format("{}: a hot lock among cold ones{}\n{}\n", block_text(block.place),
                           emulation_text(block.place.emulated()), lines.text());
    }
    if (!table.blocks.empty())
        out += "  Means over the repetitions. wait: of one lock(). pounded: repetitions in which most of the waiting "
               "was for\n"
               "  the hot lock; in the others a preempted holder made a cold one the worst.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
