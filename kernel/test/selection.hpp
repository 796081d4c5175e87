// SPDX-License-Identifier: BSD-2-Clause
//
// Which tests the command line asks for.
//
//   tests=  a pattern matches the full name (name/lock/backend) or the name alone. Without tests= everything runs
//   except
//           what runs on request only; that must be named in full, without * or ?.
//   locks=  narrows the tests that belong to a lock: a pattern matches the lock or lock/backend.
//   skip=   takes away what it matches, by the rule of tests=.
#pragma once

#include "kernel/command_line.hpp"
#include "kernel/test/registry.hpp"
#include "kernel/test/test.hpp"
#include "kernel/text.hpp"

namespace spinkick::test {

[[nodiscard]] bool is_selected(const Test& test, const CommandLine& line) noexcept;

/// False if a pattern matches nothing in this image: it is then misspelt, and a run without it would look complete.
[[nodiscard]] bool check_patterns(const Registry& registry, const CommandLine& line, ErrorText& error) noexcept;

} // namespace spinkick::test
