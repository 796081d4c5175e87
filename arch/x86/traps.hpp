// SPDX-License-Identifier: BSD-2-Clause
//
// Exceptions and interrupts of one CPU: the IDT, its stubs' frame, and who handles what.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/types.hpp"

namespace spinkick::x86 {

/// What the stubs in entry.S push, lowest address first; the upper part is the processor's own frame (Intel SDM
/// 3A 6.14).
struct TrapFrame {
    std::uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
    std::uint64_t vector, error_code;
    std::uint64_t rip, cs, rflags, rsp, ss;
};
static_assert(sizeof(TrapFrame) == 22 * 8, "entry.S pushes 15 registers and two words onto the processor's five");

/// Handler of an interrupt vector. Runs with interrupts masked, on the stack of what it interrupted; the dispatcher has
/// not sent the EOI yet and sends it afterwards.
using InterruptHandler = void (*)(TrapFrame&) noexcept;

/// Prints the registers of the frame, then ends like machine::die().
[[noreturn]] void die_with_frame(const TrapFrame& frame, std::string_view reason) noexcept;

namespace traps {
/// Fills the IDT; boot CPU, once.
void init() noexcept;
/// Loads the IDT on this CPU.
void load_this_cpu() noexcept;
/// Installs a handler for a vector from 32 on, or for an exception. Replaces the one before; nullptr removes it (a
/// stray interrupt is then counted, an exception is the end).
void set_handler(std::uint8_t vector, InterruptHandler handler, bool needs_eoi = true) noexcept;
/// Runs the handler of a vector that came by another way than the IDT (an event channel); no EOI.
void deliver(std::uint8_t vector, TrapFrame& frame) noexcept;
/// Handler that runs in NMI context for every NMI, after the snapshot and rescue work; nullptr for none.
void set_nmi_handler(InterruptHandler handler) noexcept;
} // namespace traps

} // namespace spinkick::x86
