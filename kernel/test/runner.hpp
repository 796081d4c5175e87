// SPDX-License-Identifier: BSD-2-Clause
//
// Runs the tests that the command line asks for and writes the whole report, from `KTAP version 1` to the verdict.
#pragma once

#include <string_view>

#include "kernel/command_line.hpp"
#include "kernel/test/registry.hpp"
#include "kernel/test/report.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::test {

/// On the boot CPU, once. Bad input (a name that stands twice, a pattern that matches nothing) is a verdict too.
[[nodiscard]] Verdict run(const Registry& registry, const CommandLine& line) noexcept;
/// Runs what `line` asks for, numbered on from counts.plan, which grows by as many. False: nothing ran, and `error`
/// says why.
[[nodiscard]] bool run_more(const Registry& registry, const CommandLine& line, Counts& counts,
                            ErrorText& error) noexcept;

/// The test that runs, for a panic and for the watchdog; from any CPU and context. Empty and nullptr between tests. The
/// memory behind both lives on, so a reader that is late sees the next test, never something else.
[[nodiscard]] std::string_view running_test_name() noexcept;
[[nodiscard]] TestContext* running_test() noexcept;

} // namespace spinkick::test
