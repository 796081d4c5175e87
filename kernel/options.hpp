// SPDX-License-Identifier: BSD-2-Clause
//
// The command line of this run, for whoever acts on it. Read once, before any test.
#pragma once

#include "kernel/command_line.hpp"

namespace spinkick::options {

[[nodiscard]] const CommandLine& command_line() noexcept;

} // namespace spinkick::options
