// SPDX-License-Identifier: BSD-2-Clause
//
// `spinkick-report table NAME`: a table in a published layout. Each has a file of its own and a line in
// table_command().
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tools/cascade_table.hpp"
#include "tools/commands.hpp"
#include "tools/event_table.hpp"
#include "tools/host_table.hpp"
#include "tools/inputs.hpp"
#include "tools/io_table.hpp"
#include "tools/jobs_table.hpp"
#include "tools/micro_table.hpp"
#include "tools/mixed_table.hpp"
#include "tools/overcommit_table.hpp"
#include "tools/sides.hpp"
#include "tools/waitearly_table.hpp"

namespace spinkick::report {
namespace {

constexpr std::string_view kTables = "cascade, events, host, io, jobs, micro, mixed, overcommit, waitearly";

void complain_of(const std::vector<std::string>& problems) {
    if (!problems.empty())
        complain(problems.size() == 1 ? problems.front()
                                      : fmt::format("{}; and {} more", problems.front(), problems.size() - 1));
}

struct OvercommitArguments {
    std::vector<std::string> base, against, locks;
    std::string figure = "acquisitions_per_s";
};

int run_overcommit(const OvercommitArguments& arguments) {
    const auto figure = figure_named(arguments.figure);
    if (!figure) {
        complain(fmt::format("--figure {}: one of {} is wanted", arguments.figure, figure_names()));
        return raw(ExitCode::error);
    }
    if (arguments.against.empty() && arguments.locks.size() != 2) {
        complain("table overcommit: --against RESULTS is wanted, or --lock twice");
        return raw(ExitCode::error);
    }
    Loaded base = load_all(paths_in(arguments.base));
    Loaded next = load_all(paths_in(arguments.against));
    if (base.parts.empty() || (next.parts.empty() && !arguments.against.empty()))
        return raw(ExitCode::error);
    const Results base_results = merge(std::move(base.parts));
    OvercommitTable table;
    if (arguments.against.empty()) {
        fmt::print("{}\n", side_text("results", base_results));
        table = overcommit_of_locks(base_results, *figure, arguments.locks[0], arguments.locks[1]);
    } else {
        const Results next_results = merge(std::move(next.parts));
        fmt::print("{}{}{}\n", side_text("base", base_results), side_text("patched", next_results),
                   differences_text(base_results, next_results));
        table = overcommit_of_results(base_results, next_results, *figure, arguments.locks);
    }
    fmt::print("{}", overcommit_text(table));
    complain_of(table.problems);
    return raw(table.problems.empty() && base.complete && next.complete ? ExitCode::pass : ExitCode::error);
}

Command overcommit_command(CLI::App& parent) {
    auto arguments = std::make_shared<OvercommitArguments>();
    auto* app = parent.add_subcommand(
        "overcommit",
        "base, stdev, patched, stdev, %improve for each number of vCPUs per host CPU: two sets of results, "
        "or two locks of one");
    app->add_option("results", arguments->base, "run directories or results.json files: base")->required();
    app->add_option("--against", arguments->against, "the same: patched");
    app->add_option("--lock", arguments->locks, "only this lock; without --against: the two locks, base and patched");
    app->add_option("--figure", arguments->figure, "one of " + figure_names() + " (default acquisitions_per_s)");
    return {app, [arguments] { return run_overcommit(*arguments); }};
}

/// A table of one workload over one set of results.
template <auto kTableOf>
Command workload_command(CLI::App& parent, const std::string& name, const std::string& what) {
    auto paths = std::make_shared<std::vector<std::string>>();
    auto* app = parent.add_subcommand(name, what);
    app->add_option("results", *paths, "run directories or results.json files")->required();
    return {app, [paths] {
                Loaded loaded = load_all(paths_in(*paths));
                if (loaded.parts.empty())
                    return raw(ExitCode::error);
                const Results results = merge(std::move(loaded.parts));
                const auto table = kTableOf(results);
                fmt::print("{}\n{}", side_text("results", results), text_of(table));
                complain_of(table.problems);
                return raw(table.problems.empty() && loaded.complete ? ExitCode::pass : ExitCode::error);
            }};
}

} // namespace

Command table_command(CLI::App& parent) {
    auto* app = parent.add_subcommand("table", "Print a table in a published layout: " + std::string{kTables});
    app->require_subcommand(0, 1);
    const std::vector<Command> tables{
        overcommit_command(*app),
        workload_command<cascade_table>(
            *app, "cascade",
            "trace.contention of pv-queued: whether one early halt makes the next waiter halt early, and how far"),
        workload_command<event_table>(*app, "events",
                                      "bench.event_channels: from the send to the receiver by each way of telling, "
                                      "two-level and FIFO event channels"),
        workload_command<host_table>(*app, "host",
                                     "any benchmark with --host-counters: halts, kicks and yields as the guest and "
                                     "as KVM counted them"),
        workload_command<io_table>(*app, "io",
                                   "bench.io: operations a second, with halts, kicks and interrupts for each"),
        workload_command<mixed_table>(*app, "mixed", "bench.mixed: which of several locks are pounded"),
        workload_command<jobs_table>(
            *app, "jobs", "bench.jobs: jobs a minute, real, sys and usr time of the five published locks, by load"),
        workload_command<micro_table>(
            *app, "micro", "bench.micro: time for the pairs of 1 to N tasks, ticket and queued locks, PV off and on"),
        workload_command<waitearly_table>(
            *app, "waitearly", "bench.waitearly: records a second and counters, by when a queued waiter halts early"),
    };
    return {app, [tables] {
                for (const Command& table : tables)
                    if (table.app->parsed())
                        return table.run();
                complain(fmt::format("which table? {} (--help)", kTables));
                return raw(ExitCode::error);
            }};
}

} // namespace spinkick::report
