// SPDX-License-Identifier: BSD-2-Clause
//
// Sub-commands that read results and write a report: one file each.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace spinkick::report {

struct Command {
    CLI::App* app;
    std::function<int()> run; ///< to be called if `app` was parsed; gives the exit code
};

[[nodiscard]] Command compare_command(CLI::App& parent);
[[nodiscard]] Command html_command(CLI::App& parent);
[[nodiscard]] Command junit_command(CLI::App& parent);
[[nodiscard]] Command monitor_command(CLI::App& parent);
[[nodiscard]] Command steal_command(CLI::App& parent);
[[nodiscard]] Command table_command(CLI::App& parent);
[[nodiscard]] Command trace_command(CLI::App& parent);

} // namespace spinkick::report
