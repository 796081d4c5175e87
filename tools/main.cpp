// SPDX-License-Identifier: BSD-2-Clause
//
// spinkick-report: reads what the image wrote on the serial line, and says what it means.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/collect.hpp"
#include "tools/commands.hpp"
#include "tools/follow.hpp"
#include "tools/inputs.hpp"
#include "tools/post_mortem.hpp"
#include "tools/qmp.hpp"
#include "tools/results.hpp"
#include "tools/summary.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

int collect(const std::vector<std::filesystem::path>& logs, const std::filesystem::path& out, const RunFacts& facts) {
    const Results results = results_of(read_logs(logs), facts);
    write_files(results, out);
    // A verdict of the image speaks for itself; trouble around it is nobody's but this program's to tell.
    if (results.word() == Word::ERROR && !results.reason().empty())
        complain(results.reason());
    return raw(exit_code_of(results.word()));
}

int print_summary(const std::vector<std::filesystem::path>& paths) {
    Loaded loaded = load_all(paths);
    if (!loaded.parts.empty()) {
        const char* no_colour = std::getenv("NO_COLOR");
        const bool colour = isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
        fmt::print("{}", summary(merge(std::move(loaded.parts)), colour ? Colour::on : Colour::off));
    }
    return raw(loaded.complete ? ExitCode::pass : ExitCode::error);
}

int merge_runs(const std::vector<std::filesystem::path>& paths, const std::filesystem::path& out) {
    Loaded loaded = load_all(paths);
    if (loaded.parts.empty())
        return raw(ExitCode::error);
    const Results whole = merge(std::move(loaded.parts));
    write_files(whole, out);
    // A run whose results cannot be read counts as one that ended in an error.
    return raw(exit_code_of(loaded.complete ? whole.word() : worst(whole.word(), Word::ERROR)));
}

void send_qmp(const std::filesystem::path& socket, const std::vector<std::string>& commands) {
    QmpClient qemu(socket, std::chrono::steady_clock::now() + std::chrono::seconds{5});
    for (const std::string& command : commands)
        fmt::print("{}\n", qemu.execute(command).dump());
}

int run(int argc, char** argv) {
    CLI::App app{"Reads what the spinkick image wrote on the serial line, and says what it means."};
    app.require_subcommand(0, 1);
    std::filesystem::path out;
    std::vector<std::filesystem::path> inputs;
    RunFacts facts;

    auto* collect_command = app.add_subcommand(
        "collect",
        "Write results.tap, results.json and junit.xml from the serial log of one run; the exit code is the run's");
    collect_command->add_option("--serial", inputs, "serial logs, read one after another")->required();
    collect_command->add_option("--out", out, "directory of the results")->required();
    collect_command->add_option("--platform", facts.platform, "where it ran: tcg, kvm, nested-kvm, xen-pvh ...")
        ->required();
    collect_command->add_option("--timing", facts.timing, "emulated or real")
        ->required()
        ->check(CLI::IsMember({"emulated", "real"}));
    collect_command->add_option("--image", facts.image, "file name of the image, for the records");
    collect_command->add_option("--image-sha256", facts.image_sha256, "its hash, as sha256sum prints it")
        ->check([](const std::string& hash) {
            const bool good = hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
            return good ? std::string{} : "a SHA-256 has 64 lower-case hex digits, not: " + hash;
        });
    collect_command->add_option("--pcpus", facts.pcpus, "host CPUs that the guest may use");
    collect_command->add_option("--run", facts.id.run, "number of this run under --repeat");
    collect_command->add_option("--vm", facts.id.vm, "number of this guest under --vms");
    collect_command->add_option("--qemu-exit", facts.ending.qemu_exit,
                                "exit code of QEMU; must agree with the verdict");
    collect_command->add_option(
        "--xen-shutdown", facts.ending.xen_shutdown,
        "reason of the end of a Xen domain: 0 power-off, which goes with a verdict, 1 reboot, 3 crash");
    collect_command->add_option("--host-counters", facts.host_counters,
                                "KVM's statistics of this guest, NAME=NUMBER ...; empty if they could not be read");
    std::filesystem::path host_syncs;
    collect_command->add_option("--host-syncs", host_syncs,
                                "file of KVM's statistics at each sync point: N NAME=NUMBER ...");
    collect_command
        ->add_option("--host-fact", facts.host_facts,
                     "what of the host matters, NAME=VALUE ..., for the context record")
        ->check([](const std::string& fact) {
            const auto equals = fact.find('=');
            const bool good = equals != 0 && equals != std::string::npos;
            return good ? std::string{} : "NAME=VALUE is wanted, not: " + fact;
        });
    collect_command->add_flag("--timed-out", facts.ending.timed_out, "the runner had to stop the guest");

    auto* summary_command =
        app.add_subcommand("summary", "Print what ran where, the figures, the tests and the verdict");
    summary_command->add_option("results", inputs, "run directories or results.json files")->required();

    auto* merge_command = app.add_subcommand(
        "merge",
        "Write the results of several runs as one; the exit code is the first of 1, 3, 124, 2, 77, 0 that occurred");
    merge_command->add_option("results", inputs, "run directories or results.json files")->required();
    merge_command->add_option("--out", out, "directory of the merged results")->required();

    FollowOptions follow_options;
    auto* follow_command = app.add_subcommand(
        "follow",
        "Copy the serial stream from standard input to a log until it ends, and show progress on standard error");
    follow_command->add_option("--log", follow_options.log, "every byte is appended to this file")->required();
    follow_command->add_option("--total-timeout", follow_options.total_timeout_s,
                               "seconds after which the runner will stop the guest, for display");
    follow_command->add_flag("--plain", follow_options.plain, "one line for each test, even on a terminal");

    PostMortemOptions post_mortem_options;
    auto* post_mortem_command = app.add_subcommand(
        "post-mortem", "Ask a QEMU whose guest hangs for its CPUs, and append the dump of the stall to the serial log");
    post_mortem_command->add_option("--qmp", post_mortem_options.socket, "QEMU's QMP socket")->required();
    post_mortem_command->add_option("--log", post_mortem_options.log, "the dump is appended to this file")->required();
    post_mortem_command->add_option("--image", post_mortem_options.image, "the image, for names of functions")
        ->required();
    post_mortem_command->add_option("--after", post_mortem_options.after_s, "seconds to wait before");
    post_mortem_command
        ->add_option("--cpus", post_mortem_options.view,
                     "virtual: those of the image; physical: those below its hypervisor")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, CpuView>{{"virtual", CpuView::vcpus}, {"physical", CpuView::pcpus}}));

    std::filesystem::path qmp_socket;
    std::vector<std::string> qmp_commands;
    auto* qmp_command = app.add_subcommand("qmp", "Send commands without arguments to a QEMU, and print its answers");
    qmp_command->add_option("--socket", qmp_socket, "QEMU's QMP socket")->required();
    qmp_command->add_option("command", qmp_commands, "stop, cont, query-status ...")->required();
    const std::array commands{compare_command(app), html_command(app),  junit_command(app), monitor_command(app),
                              steal_command(app),   table_command(app), trace_command(app)};

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0)
            return app.exit(error);
        complain(error.what());
        return raw(ExitCode::error);
    }

    // Asked for by hand: CLI11 would miss a sub-command before it names the word that is none.
    if (app.get_subcommands().empty()) {
        std::vector<std::string> names;
        for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
            names.push_back(command->get_name());
        complain(fmt::format("which sub-command? one of {} (--help)", fmt::join(names, ", ")));
        return raw(ExitCode::error);
    }
    if (collect_command->parsed()) {
        if (!host_syncs.empty())
            facts.host_syncs = read_host_syncs(host_syncs);
        return collect(inputs, out, facts);
    }
    if (summary_command->parsed())
        return print_summary(inputs);
    if (merge_command->parsed())
        return merge_runs(inputs, out);
    for (const Command& command : commands)
        if (command.app->parsed())
            return command.run();
    if (qmp_command->parsed())
        send_qmp(qmp_socket, qmp_commands);
    else if (post_mortem_command->parsed())
        post_mortem(post_mortem_options);
    else
        follow(STDIN_FILENO, STDERR_FILENO, follow_options);
    return raw(ExitCode::pass);
}

} // namespace
} // namespace spinkick::report

int main(int argc, char** argv) {
    try {
        return spinkick::report::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "spinkick-report: {}\n", error.what());
        return spinkick::report::raw(spinkick::report::ExitCode::error);
    }
}
