// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/faults.hpp"

#include "arch/x86/insn.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/power.hpp"

namespace spinkick::faults {

using namespace x86;

void triple_fault() noexcept { power::triple_fault(); }

namespace {
[[gnu::noinline]] std::uint64_t recurse(std::uint64_t depth) noexcept {
    volatile std::uint64_t frame[32];
    frame[depth % 32] = depth;
    return recurse(depth + 1) + frame[(depth + 1) % 32]; // not a tail call: each level keeps its frame
}
} // namespace

// The compiler sees that the recursion has no end; that is its purpose.
#pragma GCC diagnostic push
#if defined(__clang__)
#pragma GCC diagnostic ignored "-Winfinite-recursion"
#elif __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Winfinite-recursion"
#endif
void overflow_stack() noexcept { (void)recurse(0); }
#pragma GCC diagnostic pop

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

bool read_missing_msr() noexcept { return !rdmsr_safe(Msr{0x12345678}).has_value(); }

} // namespace spinkick::faults
