// SPDX-License-Identifier: BSD-2-Clause
#include "tools/waitearly_table.hpp"

#include <algorithm>
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

constexpr std::string_view kPrefix = "waitearly_";
constexpr std::array<std::string_view, 3> kPolicies{"off", "state", "preempted"};
constexpr std::size_t kEarly = 1, kPreempted = 4; ///< in kWaitEarlyCounters

} // namespace

WaitEarlyTable waitearly_table(const Results& results) {
    using Key = std::tuple<Place, std::string>;
    const auto key_of = [](const WorkloadRecord& record) {
        Place place = record.place;
        place.bench = "waitearly";
        return Key{place, lock_name(record.lock, record.backend)};
    };
    std::vector<WorkloadRecord> records;
    for (const std::string_view policy : kPolicies) {
        const auto of_policy = workload_records(results, std::string{kPrefix} + std::string{policy});
        records.insert(records.end(), of_policy.begin(), of_policy.end());
    }
    WaitEarlyTable table;
    for (const auto& [key, group] : grouped(records, key_of)) {
        const auto& [place, lock] = key;
        WaitEarlyBlock block{place, lock, {}};
        for (const std::string_view policy : kPolicies) {
            WaitEarlyRow row{policy, {}, {}, {}};
            for (const WorkloadRecord& record : group) {
                const auto rate = number_in(*record.record, "records_per_s");
                if (!rate || record.place.bench.substr(kPrefix.size()) != policy)
                    continue;
                row.per_second.push_back(static_cast<double>(*rate));
                if (const auto ns = number_in(*record.record, "shootdown_ns_mean"))
                    row.shootdown_ns.push_back(static_cast<double>(*ns));
                for (std::size_t i = 0; i < kWaitEarlyCounters.size(); ++i)
                    row.counters[i] += number_in(*record.record, kWaitEarlyCounters[i]).value_or(0);
            }
            if (row.per_second.empty())
                table.problems.push_back(
                    fmt::format("no figures of {} with wait_early={} ({})", printable(lock), policy, text_of(place)));
            block.rows.push_back(std::move(row));
        }
        table.blocks.push_back(std::move(block));
    }
    if (table.blocks.empty())
        table.problems.emplace_back("no figures of bench.waitearly: --append tests=bench.waitearly");
    return table;
}

std::string text_of(const WaitEarlyTable& table) {
    std::string out;
    for (const WaitEarlyBlock& block : table.blocks) {
        std::vector<std::string> headings{"wait_early", "records/s", "stdev", "shootdown"};
        headings.insert(headings.end(), kWaitEarlyCounters.begin(), kWaitEarlyCounters.end());
        headings.insert(headings.end(), {"by the flag %", ""});
        TextTable lines(std::move(headings), 1);
        for (const WaitEarlyRow& row : block.rows) {
            if (row.per_second.empty()) {
                lines.add({std::string{row.policy}, "-"});
                continue;
            }
            const auto deviation = deviation_of(row.per_second);
            std::vector<std::string> cells{
                std::string{row.policy}, human_count(mean_of(row.per_second)),
                deviation ? human_count(*deviation) : "-",
                row.shootdown_ns.empty() ? "-" : human_value(mean_of(row.shootdown_ns), Unit::nanoseconds)};
            for (const std::uint64_t counter : row.counters)
                cells.push_back(std::to_string(counter));
            cells.push_back(row.counters[kEarly] == 0
                                ? "-"
                                : three_digits(100 * static_cast<double>(row.counters[kPreempted]) /
                                               static_cast<double>(row.counters[kEarly])));
            lines.add(std::move(cells));
        }
        out += fmt::format("{}, {}: records/s (more is better){}\n{}\n", printable(block.lock), block_text(block.place),
                           emulation_text(block.place.emulated()), lines.text());
    }
    if (!table.blocks.empty())
        out +=
            "  records/s: mean over repetitions and guests. shootdown: mean of a TLB shootdown. Counters: sums over "
            "both.\n"
            "  by the flag: early waits that the hypervisor's preempted flag began; the others followed a predecessor\n"
            "  that had halted itself.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
