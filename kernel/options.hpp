// SPDX-License-Identifier: BSD-2-Clause
//
// The command line of this run, for whoever acts on it: that of the boot, or what the monitor has made of it.
#pragma once

#include "kernel/command_line.hpp"

namespace spinkick::options {

[[nodiscard]] const CommandLine& command_line() noexcept;
/// From here on it is `line`, which lives as long as the kernel. No test runs.
void use(const CommandLine& line) noexcept;

} // namespace spinkick::options
