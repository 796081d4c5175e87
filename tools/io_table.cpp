// SPDX-License-Identifier: BSD-2-Clause
#include "tools/io_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "tools/sides.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/units.hpp"
#include "tools/workload.hpp"

namespace spinkick::report {
namespace {

struct Published {
    std::string_view lock;
    std::string_view as; ///< what it stands for in the publication
};
constexpr std::array kPublished{Published{"debug", "debugging on"}, Published{"byte", "PV spinlocks on"},
                                Published{"ticket", "PV spinlocks off"}};
constexpr std::string_view kBaseline = kPublished[0].lock;

std::size_t rank_of(std::string_view lock) noexcept {
    return static_cast<std::size_t>(std::find_if(kPublished.begin(), kPublished.end(),
                                                 [lock](const Published& p) { return names_lock(p.lock, lock); }) -
                                    kPublished.begin());
}

void add(IoRow& row, const Json& record) {
    const auto operations = static_cast<double>(number_in(record, "operations").value_or(0));
    const auto rate = number_in(record, "operations_per_s");
    if (!rate || operations <= 0)
        return;
    const auto per_operation = [&](const char* key) {
        return static_cast<double>(number_in(record, key).value_or(0)) / operations;
    };
    row.per_second.push_back(static_cast<double>(*rate));
    row.halts.push_back(per_operation("halts"));
    row.kicks.push_back(per_operation("kicks"));
    row.interrupts.push_back(per_operation("interrupts"));
}

IoBlock block_of(const Place& place, const std::vector<WorkloadRecord>& group) {
    IoBlock block{place, {}};
    for (const WorkloadRecord& record : group) {
        const std::string name = lock_name(record.lock, record.backend);
        auto row = std::find_if(block.rows.begin(), block.rows.end(), [&](const IoRow& r) { return r.lock == name; });
        if (row == block.rows.end())
            row = block.rows.insert(block.rows.end(), IoRow{name, {}, {}, {}, {}, {}});
        add(*row, *record.record);
    }
    std::erase_if(block.rows, [](const IoRow& row) { return row.per_second.empty(); });
    std::stable_sort(block.rows.begin(), block.rows.end(),
                     [](const IoRow& a, const IoRow& b) { return rank_of(a.lock) < rank_of(b.lock); });
    const auto base = std::find_if(block.rows.begin(), block.rows.end(),
                                   [](const IoRow& row) { return names_lock(kBaseline, row.lock); });
    const double rate = base == block.rows.end() ? 0 : mean_of(base->per_second);
    for (IoRow& row : block.rows)
        if (rate > 0 && !names_lock(kBaseline, row.lock))
            row.change = mean_of(row.per_second) / rate - 1;
    return block;
}

} // namespace

IoTable io_table(const Results& results) {
    IoTable table;
    for (const auto& [place, group] :
         grouped(workload_records(results, "io"), [](const WorkloadRecord& record) { return record.place; })) {
        IoBlock block = block_of(place, group);
        for (const Published& published : kPublished)
            if (std::none_of(block.rows.begin(), block.rows.end(),
                             [&](const IoRow& row) { return names_lock(published.lock, row.lock); }))
                table.problems.push_back(fmt::format("no figures of {} ({})", published.lock, text_of(place)));
        table.blocks.push_back(std::move(block));
    }
    if (table.blocks.empty())
        table.problems.emplace_back("no figures of bench.io: --append tests=bench.io");
    return table;
}

std::string text_of(const IoTable& table) {
    std::string out;
    for (const IoBlock& block : table.blocks) {
        TextTable lines({"lock/back end", "published as", "operations/s", "stdev", "change %", "halts/op", "kicks/op",
                         "interrupts/op", ""},
                        2);
        for (const IoRow& row : block.rows) {
            const std::size_t rank = rank_of(row.lock);
            const auto deviation = deviation_of(row.per_second);
            const auto ratio = [](const std::vector<double>& values) {
                return human_value(mean_of(values), Unit::ratio);
            };
            lines.add({printable(row.lock), std::string{rank < kPublished.size() ? kPublished[rank].as : ""},
                       human_count(mean_of(row.per_second)), deviation ? human_count(*deviation) : "-",
                       row.change ? human_change(*row.change) : "-", ratio(row.halts), ratio(row.kicks),
                       ratio(row.interrupts), ""});
        }
        out += fmt::format("{}: operations/s (more is better){}\n{}\n", block_text(block.place),
                           emulation_text(block.place.emulated()), lines.text());
    }
    if (!table.blocks.empty())
        out += "  Means over the repetitions. change: against debug. interrupts: completions; the fewer for an "
               "operation,\n"
               "  the more requests were waiting when one came.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
