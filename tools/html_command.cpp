// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <utility>

#include "tools/commands.hpp"
#include "tools/inputs.hpp"
#include "tools/page.hpp"

namespace spinkick::report {
namespace {

struct HtmlArguments {
    std::vector<std::string> inputs;
    std::filesystem::path out;
};

int run(const HtmlArguments& arguments) {
    Loaded loaded = load_all(paths_in(arguments.inputs));
    if (loaded.parts.empty())
        return raw(ExitCode::error);
    write_file(arguments.out, page(merge(std::move(loaded.parts))));
    return raw(loaded.complete ? ExitCode::pass : ExitCode::error);
}

} // namespace

Command html_command(CLI::App& parent) {
    auto arguments = std::make_shared<HtmlArguments>();
    auto* app = parent.add_subcommand("html", "Draw the figures of one or several runs as a page in one file");
    app->add_option(
           "results", arguments->inputs,
           "run directories or results.json files; with other numbers of vCPUs or host CPUs they become curves")
        ->required();
    app->add_option("--out", arguments->out, "the page, such as page.html")->required();
    return {app, [arguments] { return run(*arguments); }};
}

} // namespace spinkick::report
