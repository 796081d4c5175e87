// SPDX-License-Identifier: BSD-2-Clause
//
// What the runner asks of the running machine beyond kernel/machine.hpp and kernel/clock.hpp.
#pragma once

#include <string_view>

#include "kernel/test/test.hpp"

namespace spinkick::test {

/// Empty if tests on this back end can run here; else the fact that forbids it, as a static text:
/// "no PV_UNHALT: leaf 0x40000001 EAX=0x0000007b".
[[nodiscard]] std::string_view backend_unavailable_reason(Backend backend) noexcept;

/// Writes the record of type `context` (docs/report-format.md), the first of a run.
void emit_context_record() noexcept;

/// Writes the record of type `hypercalls`, after the last test: what the host can be asked about.
void emit_hypercall_record() noexcept;

/// After the last test: one WARN line for each thing that this machine was seen to do wrong and the kernel made good.
void report_machine_faults() noexcept;

} // namespace spinkick::test
