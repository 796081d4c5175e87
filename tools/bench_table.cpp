// SPDX-License-Identifier: BSD-2-Clause
#include "tools/bench_table.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "tools/distribution.hpp"
#include "tools/record.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"
#include "tools/units.hpp"

namespace spinkick::report {
namespace {

/// One lock in all its repetitions.
struct Row {
    std::string lock;
    std::vector<double> per_second;
    std::optional<std::uint64_t> share_min, share_max;
    std::vector<double> jain;
    std::optional<std::uint64_t> halts, kicks, spurious, steal_ns;
    std::optional<Distribution> wait, handoff;
    std::vector<std::uint64_t> kicks_taken; ///< by each vCPU, all repetitions

    void add_bench(const Json& record) {
        const auto add = [&record](std::optional<std::uint64_t>& sum, const char* key) {
            if (const auto number = number_in(record, key))
                sum = sum.value_or(0) + *number;
        };
        if (const auto number = number_in(record, "acquisitions_per_s"))
            per_second.push_back(static_cast<double>(*number));
        if (const auto number = number_in(record, "jain_permille"))
            jain.push_back(static_cast<double>(*number) / 1000);
        if (const auto number = number_in(record, "share_min_permille"))
            share_min = std::min(share_min.value_or(*number), *number);
        if (const auto number = number_in(record, "share_max_permille"))
            share_max = std::max(share_max.value_or(0), *number);
        add(halts, "halts");
        add(kicks, "kicks");
        add(spurious, "spurious");
        add(steal_ns, "steal_ns");
        const std::vector<std::uint64_t> taken = numbers_in(record, "kicks_taken");
        kicks_taken.resize(std::max(kicks_taken.size(), taken.size()));
        for (std::size_t i = 0; i < taken.size(); ++i)
            kicks_taken[i] += taken[i];
    }
};

struct Table {
    std::string title;
    std::vector<Row> rows;

    Row& row(const std::string& lock) {
        const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.lock == lock; });
        return found != rows.end() ? *found : rows.emplace_back(Row{lock, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}});
    }
};

/// Sample standard deviation in percent of the mean.
std::string deviation(const std::vector<double>& values) {
    const double mean = mean_of(values);
    const auto deviation = deviation_of(values);
    return deviation && mean > 0 ? fmt::format("{:.1f}%", 100 * *deviation / mean) : "-";
}

std::string count_text(std::optional<std::uint64_t> count) {
    return count ? human_count(static_cast<double>(*count)) : "-";
}

std::string percent(std::optional<std::uint64_t> permille) {
    return permille ? fmt::format("{:.1f}", static_cast<double>(*permille) / 10) : "-";
}

constexpr std::size_t kColumns = 16;
using Cells = std::array<std::string, kColumns>;

Cells cells_of(const Row& row) {
    const auto time = [](std::optional<std::uint64_t> ns, bool bounded) {
        return ns ? (bounded ? "<" : "") + human_time(*ns) : std::string{"-"};
    };
    const auto percentile = [&time](const std::optional<Distribution>& distribution, unsigned percent) {
        return distribution ? time(distribution->percentile(percent), distribution->is_bounded()) : std::string{"-"};
    };
    return {printable(row.lock),
            row.per_second.empty() ? "-" : human_count(mean_of(row.per_second)),
            deviation(row.per_second),
            percent(row.share_min),
            percent(row.share_max),
            row.jain.empty() ? "-" : fmt::format("{:.3f}", mean_of(row.jain)),
            percentile(row.wait, 50),
            percentile(row.wait, 99),
            time(row.wait ? row.wait->max_ns() : std::nullopt, false),
            percentile(row.handoff, 50),
            percentile(row.handoff, 99),
            count_text(row.halts),
            count_text(row.kicks),
            count_text(row.spurious),
            row.steal_ns ? (*row.steal_ns == 0 ? "0" : human_time(*row.steal_ns)) : "-",
            std::to_string(row.per_second.size())};
}

struct Heading {
    std::string_view upper; ///< starts above the first of the columns that it covers
    std::string_view lower;
};

constexpr std::array<Heading, kColumns> kHeadings{{{"", "lock/back end"},
                                                   {"acqui-", "sitions/s"},
                                                   {"", "stdev"},
                                                   {"share %", "min"},
                                                   {"", "max"},
                                                   {"", "Jain"},
                                                   {"wait", "p50"},
                                                   {"", "p99"},
                                                   {"", "max"},
                                                   {"handoff", "p50"},
                                                   {"", "p99"},
                                                   {"", "halts"},
                                                   {"", "kicks"},
                                                   {"", "spur."},
                                                   {"", "steal"},
                                                   {"", "reps"}}};

std::string text_of(const Table& table) {
    std::vector<Cells> lines(1);
    for (std::size_t column = 0; column < kColumns; ++column)
        lines[0][column] = kHeadings[column].lower;
    for (const Row& row : table.rows)
        lines.push_back(cells_of(row));
    std::array<std::size_t, kColumns> width{};
    for (const Cells& line : lines)
        for (std::size_t column = 0; column < kColumns; ++column)
            width[column] = std::max(width[column], line[column].size());

    std::string heading;
    std::size_t start = 0;
    for (std::size_t column = 0; column < kColumns; ++column) {
        const auto& [upper, lower] = kHeadings[column];
        if (!upper.empty()) {
            heading.resize(std::max(heading.size(), start + width[column] - lower.size()), ' ');
            heading += upper;
        }
        start += width[column] + 1;
    }
    std::string out = table.title + "\n" + heading + "\n";
    for (const Cells& line : lines) {
        out += fmt::format("{:<{}}", line[0], width[0]);
        for (std::size_t column = 1; column < kColumns; ++column)
            out += fmt::format(" {:>{}}", line[column], width[column]);
        out += '\n';
    }
    return out;
}

/// Which vCPUs took the kicks. Many vCPUs would be a wall of figures: the extremes and the middle say it then.
std::string kicks_by_vcpu(const Table& table) {
    constexpr std::size_t kMostShown = 12;
    std::size_t width = 0;
    for (const Row& row : table.rows)
        if (!row.kicks_taken.empty())
            width = std::max(width, printable(row.lock).size());
    if (width == 0)
        return "";
    std::string out = "kicks taken, vCPU by vCPU\n";
    for (const Row& row : table.rows) {
        auto taken = row.kicks_taken;
        if (taken.empty())
            continue;
        out += fmt::format("{:<{}} ", printable(row.lock), width);
        if (taken.size() <= kMostShown) {
            for (const std::uint64_t count : taken)
                out += fmt::format(" {:>5}", human_count(static_cast<double>(count)));
        } else {
            std::sort(taken.begin(), taken.end());
            out += fmt::format(" least {}, median {}, most {} of {} vCPUs",
                               human_count(static_cast<double>(taken.front())),
                               human_count(static_cast<double>(taken[taken.size() / 2])),
                               human_count(static_cast<double>(taken.back())), taken.size());
        }
        out += '\n';
    }
    return out;
}

std::string legend(const std::vector<Table>& tables) {
    std::uint64_t skew = 0;
    bool skew_known = false;
    bool bounded = false;
    bool floor = false;
    for (const Table& table : tables)
        for (const Row& row : table.rows) {
            floor = floor || row.lock.starts_with("null/");
            for (const auto* distribution : {&row.wait, &row.handoff})
                if (*distribution) {
                    bounded = bounded || (*distribution)->is_bounded();
                    skew_known = skew_known || (*distribution)->skew_ns();
                    skew = std::max(skew, (*distribution)->skew_ns().value_or(0));
                }
        }
    std::string text =
        "  acquisitions/s: mean of the repetitions, stdev in % of it. share: part of all acquisitions that the\n"
        "  least and the most lucky vCPU got. Jain: fairness index, 1.000 is equal shares.\n"
        "  wait: lock() called to lock held. handoff: release to the next holder's first instruction";
    text += skew_known ? fmt::format(";\n  it is read on two CPUs whose clocks differ by up to {}.\n", human_time(skew))
                       : ".\n";
    text += "  halts, kicks, spurious wake-ups (nothing to do after all) and steal (time in which the hypervisor ran\n"
            "  something else): sums over all repetitions. 1s = 1000ms = 1000000us. k, M, G: thousand, million, ...\n";
    if (floor)
        text += "  null locks nothing: what the measurement itself costs.\n";
    if (bounded)
        text += "  <: runs without histogram buckets; the largest percentile of any run.\n";
    return text;
}

} // namespace

std::string bench_tables(const std::vector<Json>& records) {
    using Key = std::tuple<std::string, std::string, std::string, std::optional<std::uint64_t>>;
    std::vector<Table> tables;
    std::map<Key, std::size_t> table_of;
    // A histogram has no CPU count of its own: it belongs to the run's last benchmark of that name.
    std::map<std::tuple<std::string, std::string, std::string, RunId>, std::size_t> last_table;

    for (const Json& record : records) {
        const bool is_bench = is_type(record, "bench");
        const bool is_histogram = is_type(record, "histogram");
        if (!is_bench && !is_histogram)
            continue;
        const std::string bench = text_in(record, "bench");
        if (bench == "micro" || bench.starts_with("jobs_") || bench.starts_with("waitearly_"))
            continue; // what they have to say stands in tables of their own: micro_table.hpp, jobs_table.hpp, ...
        const std::string platform = text_in(record, "platform");
        const std::string timing = text_in(record, "timing");
        const std::string backend = text_in(record, "backend");
        const std::string lock = text_in(record, "lock") + (backend.empty() ? "" : "/" + backend);
        const auto run_key = std::tuple{platform, timing, bench, run_id_of(record)};
        std::optional<std::uint64_t> cpus = number_in(record, "cpus");
        std::size_t index = tables.size();
        if (const auto last = last_table.find(run_key); is_histogram && !cpus && last != last_table.end()) {
            index = last->second;
        } else {
            const auto [entry, is_new] = table_of.try_emplace({platform, timing, bench, cpus}, tables.size());
            index = entry->second;
            if (is_new)
                tables.push_back(
                    {fmt::format("{}{} on {}{}", printable(bench), cpus ? fmt::format(", {} vCPUs,", *cpus) : "",
                                 printable(platform),
                                 timing == "emulated" ? " (EMULATED time: compare only within this table)" : ""),
                     {}});
            last_table[run_key] = index;
        }
        Row& row = tables[index].row(lock);
        if (is_bench) {
            row.add_bench(record);
            continue;
        }
        const std::string what = text_in(record, "what");
        if (auto* distribution = what == "wait" ? &row.wait : what == "handoff" ? &row.handoff : nullptr) {
            if (!*distribution)
                distribution->emplace();
            (*distribution)->add(record);
        }
    }
    if (tables.empty())
        return "";
    std::string text;
    for (const Table& table : tables)
        text += text_of(table) + kicks_by_vcpu(table) + "\n";
    return text + legend(tables);
}

} // namespace spinkick::report
