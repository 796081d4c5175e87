// SPDX-License-Identifier: BSD-2-Clause
//
// The steps of main.cpp, implemented by the machine (arch/). A step that returns false has said why.
#pragma once

#include <cstdint>

namespace spinkick::steps {

/// Makes faults end in a line, before anything else: descriptors, traps, this CPU's block.
void begin(std::uint32_t protocol, std::uint64_t information) noexcept;

[[nodiscard]] bool start_console() noexcept;
[[nodiscard]] bool read_boot_information() noexcept;
[[nodiscard]] bool read_command_line() noexcept;
[[nodiscard]] bool take_memory() noexcept;
[[nodiscard]] bool find_hypervisor() noexcept;
[[nodiscard]] bool read_tables() noexcept;
[[nodiscard]] bool start_clock() noexcept;
[[nodiscard]] bool start_interrupt_controller() noexcept;
[[nodiscard]] bool start_processors() noexcept;
[[nodiscard]] bool prove_back_ends() noexcept;
[[nodiscard]] bool run_tests() noexcept;

/// "pvh", "multiboot2": who entered.
[[nodiscard]] const char* protocol_name() noexcept;

/// The verdict of a run that could not begin, then power-off.
[[noreturn]] void end_with_error() noexcept;
/// Power-off with the verdict of run_tests().
[[noreturn]] void end() noexcept;

} // namespace spinkick::steps
