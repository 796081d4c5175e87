// SPDX-License-Identifier: BSD-2-Clause
#include "tools/jobs_table.hpp"

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

constexpr std::array<std::string_view, 3> kBenches{"jobs_light", "jobs_moderate", "jobs_heavy"};
/// The five of the publication: PV ticketlock, qspinlock, PV qspinlock, unfair qspinlock, unfair PV qspinlock.
constexpr std::array<std::string_view, 5> kPublishedLocks{"pv-ticket", "queued", "pv-queued-2014", "unfair-queued",
                                                          "unfair-pv-queued"};
constexpr std::string_view kBaselineLock = kPublishedLocks[0];
constexpr std::string_view kNative = "native";

/// Of one load, machine and number of jobs.
struct LoadKey {
    Place place;
    std::uint64_t jobs;
    friend bool operator==(const LoadKey&, const LoadKey&) = default;
};

LoadKey load_of(const WorkloadRecord& record) { return {record.place, number_in(*record.record, "jobs").value_or(0)}; }

void add(JobsRow& row, const Json& record) {
    const auto number = [&record](const char* key) { return static_cast<double>(number_in(record, key).value_or(0)); };
    const double whole = number("jobs") * number("sections_per_job");
    const double done = number("acquisitions");
    if (done <= 0)
        return;
    row.extrapolated = row.extrapolated || done < whole;
    row.per_minute.push_back(number("jobs_per_min"));
    row.real_ns.push_back(number("duration_ns") * whole / done);
    row.sys_ns.push_back(number("sys_ns") * whole / done);
    row.usr_ns.push_back(number("usr_ns") * whole / done);
    row.slow.push_back(number("slow_ppm") / 1e6);
}

/// Published locks in their order, then the others in the image's.
std::size_t published_rank(std::string_view lock) noexcept {
    return static_cast<std::size_t>(std::find(kPublishedLocks.begin(), kPublishedLocks.end(), lock) -
                                    kPublishedLocks.begin());
}

JobsBlock block_of(const std::vector<WorkloadRecord>& group, const LoadKey& key, const std::string& backend) {
    JobsBlock block{key.place, backend, key.jobs, 0, {}};
    std::vector<std::size_t> ranks;
    for (const WorkloadRecord& record : group) {
        if (record.backend != kNative && record.backend != backend)
            continue;
        const std::string name = lock_name(record.lock, record.backend);
        auto row = std::find_if(block.rows.begin(), block.rows.end(), [&](const JobsRow& r) { return r.lock == name; });
        if (row == block.rows.end()) {
            const std::size_t rank = published_rank(record.lock);
            const auto at = std::upper_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
            ranks.insert(ranks.begin() + at, rank);
            row = block.rows.insert(block.rows.begin() + at, JobsRow{name, {}, {}, {}, {}, {}, false, {}});
        }
        add(*row, *record.record);
        block.slow_wanted = static_cast<double>(number_in(*record.record, "slow_wanted_ppm").value_or(0)) / 1e6;
    }
    const auto base = std::find_if(block.rows.begin(), block.rows.end(),
                                   [](const JobsRow& row) { return names_lock(kBaselineLock, row.lock); });
    for (JobsRow& row : block.rows)
        if (base != block.rows.end() && row.lock != base->lock && mean_of(base->per_minute) > 0 &&
            !row.per_minute.empty())
            row.change = mean_of(row.per_minute) / mean_of(base->per_minute) - 1;
    return block;
}

std::string percent_text(double part) { return three_digits(100 * part); }

std::string time_text(const std::vector<double>& ns, bool extrapolated) {
    return (extrapolated ? "~" : "") + human_value(mean_of(ns), Unit::nanoseconds);
}

} // namespace

JobsTable jobs_table(const Results& results) {
    JobsTable table;
    for (const std::string_view bench : kBenches)
        for (const auto& [key, group] : grouped(workload_records(results, bench), load_of))
            for (const std::string& backend : sleeping_backends(group)) {
                JobsBlock block = block_of(group, key, backend);
                std::string missing;
                for (const std::string_view lock : kPublishedLocks)
                    if (std::none_of(block.rows.begin(), block.rows.end(), [lock](const JobsRow& row) {
                            return names_lock(lock, row.lock) && !row.per_minute.empty();
                        }))
                        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", lock);
                if (!missing.empty())
                    table.problems.push_back(fmt::format("no figures of {} ({}{}{})", missing, text_of(key.place),
                                                         backend.empty() ? "" : ", back end ", printable(backend)));
                table.blocks.push_back(std::move(block));
            }
    if (table.blocks.empty())
        table.problems.emplace_back("no figures of bench.jobs: --append tests=bench.jobs");
    return table;
}

std::string text_of(const JobsTable& table) {
    std::string out;
    for (const JobsBlock& block : table.blocks) {
        TextTable lines({"lock/back end", "jobs/min", "stdev", "change %", "real", "sys", "usr", "slow path %", ""}, 1);
        for (const JobsRow& row : block.rows) {
            if (row.per_minute.empty()) {
                lines.add({printable(row.lock), "-", "-", "-", "-", "-", "-", "-", ""});
                continue;
            }
            const auto deviation = deviation_of(row.per_minute);
            lines.add({printable(row.lock), human_count(mean_of(row.per_minute)),
                       deviation ? human_count(*deviation) : "-", row.change ? human_change(*row.change) : "-",
                       time_text(row.real_ns, row.extrapolated), time_text(row.sys_ns, row.extrapolated),
                       time_text(row.usr_ns, row.extrapolated), percent_text(mean_of(row.slow)), ""});
        }
        out += fmt::format("{}: {} jobs (more a minute is better); slow path {}% unless preempted{}\n{}\n",
                           block_text(block.place), block.jobs, percent_text(block.slow_wanted),
                           emulation_text(block.place.emulated()), lines.text());
    }
    if (!table.blocks.empty())
        out +=
            "  change: of the jobs a minute, against pv-ticket. real: from the first job to the last. sys: in lock(),\n"
            "  section and unlock(), all vCPUs together; usr: in think time; both with what interrupts and preemption\n"
            "  add. slow path: part of sys and usr in lock(), beyond what it takes alone.\n"
            "  ~: the time was up before all jobs were done (limit_ms=); reckoned from those that were.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
