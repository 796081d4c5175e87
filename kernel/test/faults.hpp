// SPDX-License-Identifier: BSD-2-Clause
//
// Ways to die that tests ask for by name; the machine implements them.
#pragma once

namespace spinkick::faults {

[[noreturn]] void triple_fault() noexcept;
/// Recurses until the guard page.
void overflow_stack() noexcept;
/// Reads address 16, which is never mapped.
void read_unmapped() noexcept;
[[noreturn]] void spin_with_interrupts_off() noexcept;
[[noreturn]] void halt_with_interrupts_off() noexcept;
[[noreturn]] void halt_with_interrupts_on() noexcept;
/// Executes an undefined instruction under a fix-up; true if that was survived and noticed.
[[nodiscard]] bool survive_undefined_instruction() noexcept;

} // namespace spinkick::faults
