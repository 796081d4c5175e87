// SPDX-License-Identifier: BSD-2-Clause
#include "tools/micro_table.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "tools/sides.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/units.hpp"
#include "tools/workload.hpp"

namespace spinkick::report {
namespace {

struct Column {
    std::string_view lock;
    MicroCell MicroRow::*cell;
    bool is_paravirt;
};
constexpr std::array kColumns{
    Column{"ticket", &MicroRow::ticket, false}, Column{"pv-ticket", &MicroRow::pv_ticket, true},
    Column{"queued", &MicroRow::queued, false}, Column{"pv-queued", &MicroRow::pv_queued, true}};

const Column* column_of(std::string_view lock) noexcept {
    const auto found =
        std::find_if(kColumns.begin(), kColumns.end(), [lock](const Column& c) { return c.lock == lock; });
    return found == kColumns.end() ? nullptr : &*found;
}

void add(MicroCell& cell, const Json& record, std::uint64_t whole) {
    constexpr double kNsPerMs = 1e6;
    const auto duration = static_cast<double>(number_in(record, "duration_ns").value_or(0));
    const std::uint64_t done = number_in(record, "acquisitions").value_or(0);
    if (done == 0)
        return;
    cell.extrapolated = cell.extrapolated || done < whole;
    cell.ms.push_back(duration / kNsPerMs * static_cast<double>(whole) / static_cast<double>(done));
}

std::string time_text(const MicroCell& cell) {
    if (cell.ms.empty())
        return "-";
    return (cell.extrapolated ? "~" : "") + three_digits(mean_of(cell.ms));
}

std::string deviation_text(const MicroCell& cell) {
    const auto deviation = deviation_of(cell.ms);
    return deviation ? three_digits(*deviation) : "-";
}

std::string change_text(const MicroCell& off, const MicroCell& on) {
    const double base = mean_of(off.ms);
    return base > 0 && !on.ms.empty() ? human_change(mean_of(on.ms) / base - 1) : "-";
}

/// Where the rows of a block were measured, and with how many pairs.
using MicroKey = std::tuple<Place, std::uint64_t>;

MicroKey key_of(const WorkloadRecord& record) {
    Place place = record.place;
    place.cpus.reset();
    return {place, number_in(*record.record, "pairs").value_or(0)};
}

} // namespace

MicroTable micro_table(const Results& results) {
    auto records = workload_records(results, "micro");
    std::erase_if(records, [](const WorkloadRecord& record) { return column_of(record.lock) == nullptr; });
    MicroTable table;
    if (records.empty())
        table.problems.emplace_back("no figures of ticket and queued locks in bench.micro: --append tests=bench.micro");
    for (const auto& [key, group] : grouped(records, key_of)) {
        for (const std::string& backend : sleeping_backends(group)) {
            MicroBlock block{backend, std::get<1>(key), {}};
            std::map<std::uint64_t, MicroRow> rows;
            for (const WorkloadRecord& record : group) {
                const Column& column = *column_of(record.lock);
                const auto tasks = record.place.cpus;
                if (!tasks || (column.is_paravirt && record.backend != backend))
                    continue;
                MicroRow& row = rows.try_emplace(*tasks, MicroRow{record.place, {}, {}, {}, {}}).first->second;
                add(row.*column.cell, *record.record, block.pairs * *tasks);
            }
            for (auto& [tasks, row] : rows)
                block.rows.push_back(std::move(row));
            for (const Column& column : kColumns) {
                const auto row = std::find_if(block.rows.begin(), block.rows.end(),
                                              [&](const MicroRow& r) { return (r.*column.cell).ms.empty(); });
                if (row != block.rows.end())
                    table.problems.push_back(
                        fmt::format("no figures of {} ({})",
                                    printable(lock_name(std::string{column.lock}, column.is_paravirt ? backend : "")),
                                    text_of(row->place)));
            }
            table.blocks.push_back(std::move(block));
        }
    }
    return table;
}

std::string text_of(const MicroTable& table) {
    std::string out;
    for (const MicroBlock& block : table.blocks) {
        if (block.rows.empty())
            continue;
        TextTable lines({"tasks", "overcommit", "ticket: off", "stdev", "on", "stdev", "change %", "queue: off",
                         "stdev", "on", "stdev", "change %", ""},
                        0);
        for (const MicroRow& row : block.rows) {
            const auto factor = row.place.overcommit();
            lines.add({std::to_string(row.place.cpus.value_or(0)), factor ? fmt::format("{:.3g}x", *factor) : "-",
                       time_text(row.ticket), deviation_text(row.ticket), time_text(row.pv_ticket),
                       deviation_text(row.pv_ticket), change_text(row.ticket, row.pv_ticket), time_text(row.queued),
                       deviation_text(row.queued), time_text(row.pv_queued), deviation_text(row.pv_queued),
                       change_text(row.queued, row.pv_queued), ""});
        }
        const Place& place = block.rows.front().place;
        out += fmt::format("micro, ms for {} lock/unlock pairs by each task (less is better), PV on: {}, on {}{}\n{}\n",
                           block.pairs, block.backend.empty() ? "did not run" : printable(block.backend),
                           machine_text(place), emulation_text(place.emulated()), lines.text());
    }
    if (!out.empty())
        out +=
            "  off: ticket, queued. on: pv-ticket, pv-queued. Means over the repetitions, with standard deviations.\n"
            "  overcommit: tasks of all guests for each host CPU; at 1x and below nobody needs to be preempted.\n"
            "  ~: the time was up before all pairs were done (limit_ms=); reckoned from those that were.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

std::string micro_overview(const Results& results) {
    std::string out;
    for (const auto& [key, group] : grouped(workload_records(results, "micro"), key_of)) {
        const auto& [place, pairs] = key;
        std::vector<std::string> locks; // in the image's order
        std::map<std::string, std::map<std::uint64_t, MicroCell>> all_cells;
        std::set<std::uint64_t> all_tasks;
        for (const WorkloadRecord& record : group) {
            const std::string lock = lock_name(record.lock, record.backend);
            if (!all_cells.contains(lock))
                locks.push_back(lock);
            const std::uint64_t tasks = record.place.cpus.value_or(0);
            all_tasks.insert(tasks);
            add(all_cells[lock][tasks], *record.record, pairs * tasks);
        }
        std::vector<std::string> headings{"lock/back end"};
        for (const std::uint64_t tasks : all_tasks)
            headings.push_back(std::to_string(tasks));
        headings.emplace_back();
        TextTable lines(std::move(headings), 1);
        for (const std::string& lock : locks) {
            std::vector<std::string> cells{printable(lock)};
            for (const std::uint64_t tasks : all_tasks)
                cells.push_back(time_text(all_cells[lock][tasks]));
            lines.add(std::move(cells));
        }
        out += fmt::format("micro, ms for {} lock/unlock pairs by each of 1, 2 ... tasks, on {}{}\n{}\n", pairs,
                           machine_text(place), emulation_text(place.emulated()), lines.text());
    }
    return out;
}

} // namespace spinkick::report
