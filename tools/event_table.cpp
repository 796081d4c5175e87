// SPDX-License-Identifier: BSD-2-Clause
#include "tools/event_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/units.hpp"

namespace spinkick::report {
namespace {

/// Several runs of one way: the run with the most events stands for it, since percentiles cannot be added.
void put(std::optional<EventCell>& cell, const EventCell& next) {
    if (!cell || next.count > cell->count)
        cell = next;
}

EventRow& row_of(EventTable& table, const std::string& platform, const std::string& notice,
                 const std::string& receiver) {
    const auto same = std::find_if(table.rows.begin(), table.rows.end(), [&](const EventRow& row) {
        return row.platform == platform && row.notice == notice && row.receiver == receiver;
    });
    if (same != table.rows.end())
        return *same;
    return table.rows.emplace_back(EventRow{platform, notice, receiver, {}, {}});
}

void add_cells(std::vector<std::string>& cells, const std::optional<EventCell>& cell) {
    if (!cell) {
        cells.insert(cells.end(), {"-", "-", "-", "-"});
        return;
    }
    cells.insert(cells.end(), {std::to_string(cell->count), human_time(cell->p50_ns), human_time(cell->p99_ns),
                               human_time(cell->max_ns)});
}

} // namespace

EventTable event_table(const Results& results) {
    EventTable table;
    for (const Json& record : results.records) {
        if (!is_type(record, "event_latency"))
            continue;
        const auto count = number_in(record, "count"), p50 = number_in(record, "p50_ns"),
                   p99 = number_in(record, "p99_ns"), max = number_in(record, "max_ns");
        const std::string form = text_in(record, "form");
        const bool is_fifo = form == "fifo";
        if (!count || !p50 || !p99 || !max || (!is_fifo && form != "2l")) {
            table.problems.push_back(
                fmt::format("an event_latency record lacks its figures, or its form (\"{}\") is not known", form));
            continue;
        }
        EventRow& row =
            row_of(table, text_in(record, "platform"), text_in(record, "notice"), text_in(record, "receiver"));
        put(is_fifo ? row.fifo : row.two_level, {*count, *p50, *p99, *max});
    }
    if (table.rows.empty() && table.problems.empty())
        table.problems.emplace_back("no event was timed: run with tests=bench.event_channels on a Xen, once with "
                                    "evtchn=2l and once with evtchn=fifo");
    return table;
}

std::string text_of(const EventTable& table) {
    if (table.rows.empty())
        return {};
    TextTable text({"platform", "told by", "receiver", "2l events", "p50", "p99", "max", "fifo events", "p50", "p99",
                    "max", "fifo/2l at p50"},
                   3);
    for (const EventRow& row : table.rows) {
        std::vector<std::string> cells{printable(row.platform), printable(row.notice), printable(row.receiver)};
        add_cells(cells, row.two_level);
        add_cells(cells, row.fifo);
        cells.push_back(row.two_level && row.fifo && row.two_level->p50_ns != 0
                            ? fmt::format("{:.2f}", static_cast<double>(row.fifo->p50_ns) /
                                                        static_cast<double>(row.two_level->p50_ns))
                            : "-");
        text.add(std::move(cells));
    }
    return "EVTCHNOP_send to the receiver's first instruction\n" + text.text();
}

} // namespace spinkick::report
