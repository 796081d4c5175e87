// SPDX-License-Identifier: BSD-2-Clause
#include "tools/bench_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"
#include "tools/units.hpp"

namespace spinkick::report {
namespace {

/// What a histogram says; merged from several runs by their buckets.
class Distribution {
  public:
    void add(const Json& record) {
        ++parts_;
        const auto keep_largest = [&record](std::optional<std::uint64_t>& value, const char* key) {
            if (const auto number = number_in(record, key))
                value = std::max(value.value_or(0), *number);
        };
        keep_largest(worst_p50_, "p50_ns");
        keep_largest(worst_p99_, "p99_ns");
        keep_largest(max_, "max_ns");
        keep_largest(skew_, "skew_ns");
        const auto buckets = record.find("buckets");
        if (buckets == record.end() || !buckets->is_array()) {
            all_have_buckets_ = false;
            return;
        }
        for (const Json& bucket : *buckets) {
            if (bucket.is_array() && bucket.size() == 2 && bucket[0].is_number_unsigned() &&
                bucket[1].is_number_unsigned())
                buckets_[bucket[0].get<std::uint64_t>()] += bucket[1].get<std::uint64_t>();
            else
                all_have_buckets_ = false;
        }
    }

    [[nodiscard]] std::string p50() const { return percentile(50, worst_p50_); }
    [[nodiscard]] std::string p99() const { return percentile(99, worst_p99_); }
    [[nodiscard]] std::string max() const { return max_ ? human_time(*max_) : "-"; }
    [[nodiscard]] std::optional<std::uint64_t> skew() const noexcept { return skew_; }
    /// Percentiles of several runs without buckets can only be bounded.
    [[nodiscard]] bool bounded() const noexcept { return parts_ > 1 && !all_have_buckets_; }

  private:
    [[nodiscard]] std::string percentile(std::uint64_t percent, std::optional<std::uint64_t> worst) const {
        if (!worst)
            return "-";
        if (parts_ == 1)
            return human_time(*worst);
        if (!all_have_buckets_)
            return "<" + human_time(*worst);
        std::uint64_t total = 0;
        for (const auto& [lowest, count] : buckets_)
            total += count;
        const std::uint64_t wanted = total / 100 * percent + total % 100 * percent / 100;
        std::uint64_t seen = 0;
        for (const auto& [lowest, count] : buckets_) {
            seen += count;
            if (seen > wanted || seen == total)
                return human_time(lowest);
        }
        return "-";
    }

    int parts_ = 0;
    bool all_have_buckets_ = true;
    std::map<std::uint64_t, std::uint64_t> buckets_;
    std::optional<std::uint64_t> worst_p50_, worst_p99_, max_, skew_;
};

/// One lock in all its repetitions.
struct Row {
    std::string lock;
    std::vector<double> per_second;
    std::optional<std::uint64_t> share_min, share_max;
    std::vector<double> jain;
    std::optional<std::uint64_t> halts, kicks, spurious, steal_ns;
    std::optional<Distribution> wait, handoff;

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
    }
};

struct Table {
    std::string title;
    std::vector<Row> rows;

    Row& row(const std::string& lock) {
        const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.lock == lock; });
        return found != rows.end() ? *found : rows.emplace_back(Row{lock, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}});
    }
};

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Sample standard deviation in percent of the mean.
std::string deviation(const std::vector<double>& values) {
    const double middle = values.empty() ? 0 : mean(values);
    if (values.size() < 2 || middle <= 0)
        return "-";
    double squares = 0;
    for (const double value : values)
        squares += (value - middle) * (value - middle);
    return fmt::format("{:.1f}%", 100 * std::sqrt(squares / static_cast<double>(values.size() - 1)) / middle);
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
    const auto of = [](const std::optional<Distribution>& distribution, auto figure) {
        return distribution ? ((*distribution).*figure)() : std::string{"-"};
    };
    return {printable(row.lock),
            row.per_second.empty() ? "-" : human_count(mean(row.per_second)),
            deviation(row.per_second),
            percent(row.share_min),
            percent(row.share_max),
            row.jain.empty() ? "-" : fmt::format("{:.3f}", mean(row.jain)),
            of(row.wait, &Distribution::p50),
            of(row.wait, &Distribution::p99),
            of(row.wait, &Distribution::max),
            of(row.handoff, &Distribution::p50),
            of(row.handoff, &Distribution::p99),
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
                    bounded = bounded || (*distribution)->bounded();
                    skew_known = skew_known || (*distribution)->skew();
                    skew = std::max(skew, (*distribution)->skew().value_or(0));
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
        text += text_of(table) + "\n";
    return text + legend(tables);
}

} // namespace spinkick::report
