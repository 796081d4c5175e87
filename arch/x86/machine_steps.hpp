// SPDX-License-Identifier: BSD-2-Clause
//
// What every CPU of this machine does on its way up, and what it does when it has nothing to do.
#pragma once

#include "arch/x86/smp.hpp"

namespace spinkick::x86 {

namespace acpi {
struct Tables;
}

namespace machine_steps {

/// Registers this CPU with whatever hypervisor there is (steal time, vcpu_info ...). Each CPU, once, before it is
/// online.
void init_this_cpu() noexcept;

/// Timer, call and NMI handlers of machine.cpp; boot CPU, once.
void install_handlers() noexcept;

/// Waits for work (machine::start_work), halted.
[[noreturn]] void idle_loop() noexcept;

/// What bring-up and tables came to, for the report and for tests.
[[nodiscard]] const smp::BringUp& bring_up() noexcept;
[[nodiscard]] const acpi::Tables& acpi_tables() noexcept;

} // namespace machine_steps
} // namespace spinkick::x86
