// SPDX-License-Identifier: BSD-2-Clause
//
// The monitor: a person at the console, or a program, asks for tests and turns switches, also while a test runs. What
// debugfs was to those who wrote the locks. One command a line; the answer is lines that begin with "# ", so that the
// whole stays a stream of the contract (docs/report-format.md), and at its end one line more: "# monitor: ready" for
// the next command, "# monitor: done" where a test runs.
#pragma once

#include "kernel/command_line.hpp"
#include "kernel/test/registry.hpp"
#include "kernel/test/report.hpp"

namespace spinkick::test {

/// Does what comes in over the console until `quit`; the verdict is that of all tests that ran. It waits for as long as
/// nobody says anything: that is what it is for, and the runner has a time limit.
[[nodiscard]] Verdict run_monitor(const Registry& registry, const CommandLine& line) noexcept;

} // namespace spinkick::test
