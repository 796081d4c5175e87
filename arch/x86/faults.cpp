// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/faults.hpp"

#include "arch/x86/fixup.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/power.hpp"

namespace spinkick::faults {

using namespace x86;

void triple_fault() noexcept { power::triple_fault(); }

namespace {
constinit volatile bool endless = true; // the compiler must not see that the recursion has no end

[[gnu::noinline]] std::uint64_t recurse(std::uint64_t depth) noexcept {
    volatile std::uint64_t frame[32];
    frame[depth % 32] = depth;
    if (!endless)
        return depth;
    return recurse(depth + 1) + frame[depth % 32]; // not a tail call: each level keeps its frame
}
} // namespace

void overflow_stack() noexcept { (void)recurse(0); }

void read_unmapped() noexcept {
    std::uint64_t address = 16;
    asm volatile("" : "+r"(address)); // the compiler must not know that it is a null pointer, or it drops the read
    (void)*reinterpret_cast<volatile std::uint8_t*>(address);
}

void spin_with_interrupts_off() noexcept {
    cli();
    for (;;)
        pause();
}

void halt_with_interrupts_off() noexcept {
    cli();
    for (;;)
        hlt();
}

void halt_with_interrupts_on() noexcept {
    for (;;)
        sti_hlt();
}

bool survive_undefined_instruction() noexcept {
    std::uint64_t vector = 0;
    std::uint32_t faulted = 1;
    asm volatile("1:\tud2\n\t"
                 "xorl %1, %1\n"
                 "2:\n" X86_FIXUP("1b", "2b")
                 : "+a"(vector), "+r"(faulted)
                 :
                 : "rdx", "memory", "cc");
    constexpr std::uint64_t kInvalidOpcode = 6;
    return faulted == 1 && vector == kInvalidOpcode;
}

} // namespace spinkick::faults
