// SPDX-License-Identifier: BSD-2-Clause
//
// `spinkick-report table NAME`: a table in a published layout. Each has a file of its own and a line in
// table_command().
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/inputs.hpp"
#include "tools/overcommit_table.hpp"
#include "tools/sides.hpp"

namespace spinkick::report {
namespace {

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
    if (!table.problems.empty())
        complain(table.problems.size() == 1
                     ? table.problems.front()
                     : fmt::format("{}; and {} more", table.problems.front(), table.problems.size() - 1));
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

} // namespace

Command table_command(CLI::App& parent) {
    auto* app = parent.add_subcommand("table", "Print a table in a published layout: overcommit");
    app->require_subcommand(0, 1);
    const std::vector<Command> tables{overcommit_command(*app)};
    return {app, [tables] {
                for (const Command& table : tables)
                    if (table.app->parsed())
                        return table.run();
                complain("which table? overcommit (--help)");
                return raw(ExitCode::error);
            }};
}

} // namespace spinkick::report
