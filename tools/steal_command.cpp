// SPDX-License-Identifier: BSD-2-Clause
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/inputs.hpp"
#include "tools/steal.hpp"

namespace spinkick::report {
namespace {

struct StealArguments {
    std::vector<std::filesystem::path> inputs;
    double limit = 0;
};

int run(const StealArguments& arguments) {
    Loaded loaded = load_all(arguments.inputs);
    if (loaded.parts.empty())
        return raw(ExitCode::error);
    const auto worst = worst_steal(merge(std::move(loaded.parts)).records);
    if (!worst) {
        complain("no benchmark with steal time");
        return raw(ExitCode::error);
    }
    fmt::print("{}\n", text_of(*worst));
    if (!loaded.complete)
        return raw(ExitCode::error);
    return raw(100 * worst->part > arguments.limit ? ExitCode::fail : ExitCode::pass);
}

} // namespace

Command steal_command(CLI::App& parent) {
    auto arguments = std::make_shared<StealArguments>();
    auto* app =
        parent.add_subcommand("steal", "Print the measurement with most steal time; exit code 1 above the limit");
    app->add_option("results", arguments->inputs, "run directories or results.json files")->required();
    app->add_option("--limit", arguments->limit, "percent of the vCPUs' time")
        ->required()
        ->check(CLI::Range(0.0, 100.0));
    return {app, [arguments] { return run(*arguments); }};
}

} // namespace spinkick::report
