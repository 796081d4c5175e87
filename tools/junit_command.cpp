// SPDX-License-Identifier: BSD-2-Clause
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/inputs.hpp"
#include "tools/junit.hpp"

namespace spinkick::report {
namespace {

struct JunitArguments {
    std::vector<std::filesystem::path> inputs;
    std::filesystem::path out;
};

int run(const JunitArguments& arguments) {
    Loaded loaded = load_all(arguments.inputs);
    if (loaded.parts.empty())
        return raw(ExitCode::error);
    const std::string xml = to_junit(merge(std::move(loaded.parts)));
    if (arguments.out.empty())
        fmt::print("{}", xml);
    else
        write_file(arguments.out, xml);
    return raw(loaded.complete ? ExitCode::pass : ExitCode::error);
}

} // namespace

Command junit_command(CLI::App& parent) {
    auto arguments = std::make_shared<JunitArguments>();
    auto* app = parent.add_subcommand("junit", "Write the tests of one or several runs as one JUnit file");
    app->add_option("results", arguments->inputs, "run directories or results.json files")->required();
    app->add_option("--out", arguments->out, "the file (default: standard output)");
    return {app, [arguments] { return run(*arguments); }};
}

} // namespace spinkick::report
