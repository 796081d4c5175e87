// SPDX-License-Identifier: BSD-2-Clause
#include <memory>
#include <utility>

#include "tools/commands.hpp"
#include "tools/inputs.hpp"
#include "tools/text.hpp"
#include "tools/trace.hpp"

namespace spinkick::report {
namespace {

struct TraceArguments {
    std::vector<std::string> inputs;
    std::filesystem::path out;
};

int run(const TraceArguments& arguments) {
    Loaded loaded = load_all(paths_in(arguments.inputs));
    if (loaded.parts.empty())
        return raw(ExitCode::error);
    const auto trace = trace_of(merge(std::move(loaded.parts)));
    if (trace.is_null())
        throw InputError("nothing was traced: run with tests=trace.contention locks=NAME");
    write_file(arguments.out, trace.dump() + "\n");
    return raw(loaded.complete ? ExitCode::pass : ExitCode::error);
}

} // namespace

Command trace_command(CLI::App& parent) {
    auto arguments = std::make_shared<TraceArguments>();
    auto* app =
        parent.add_subcommand("trace", "Write what was traced in the Chrome trace event format, for ui.perfetto.dev");
    app->add_option("results", arguments->inputs, "run directories or results.json files")->required();
    app->add_option("--out", arguments->out, "file to write")->required();
    return {app, [arguments] { return run(*arguments); }};
}

} // namespace spinkick::report
