// SPDX-License-Identifier: BSD-2-Clause
//
// One instruction, one function. Names are the mnemonics of the manuals (Intel SDM volume 2, AMD APM volume 3). Every
// asm that touches memory or orders it carries a "memory" clobber.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::x86 {

inline void cli() noexcept { asm volatile("cli" ::: "memory"); }
inline void sti() noexcept { asm volatile("sti" ::: "memory"); }
/// HLT with the mask as it is. With IF=0 only an NMI, or a hypervisor's kick, ends it.
inline void hlt() noexcept { asm volatile("hlt" ::: "memory"); }
/// PAUSE: the spin hint; also what pause-loop exiting counts.
inline void pause() noexcept { asm volatile("pause" ::: "memory"); }
/// LFENCE: no later instruction begins before all earlier ones are done.
inline void lfence() noexcept { asm volatile("lfence" ::: "memory"); }
/// In the place of a spin hint: a NOP of a kind that nobody else emits, by which the check of the machine code
/// (tests/codegen/bare_loops.awk) knows a loop that was asked to have no hint from one that forgot it.
inline void no_hint() noexcept { asm volatile("nopl 0x5350(%%rax)" ::: "memory"); }
[[noreturn]] inline void ud2() noexcept {
    asm volatile("ud2");
    __builtin_unreachable();
}

/// STI and HLT back to back, at one address in the whole image: the shadow of STI holds interrupts off until HLT has
/// started, so that an interrupt that came before ends the halt. An NMI in that shadow may let the interrupt in first;
/// the NMI handler compares its return address with sti_hlt_at_hlt and steps over the HLT; other interrupts do so where
/// a hypervisor has lost the shadow (docs/decisions/lost-interrupt-shadow.md). Defined in entry.S.
extern "C" void sti_hlt() noexcept;
extern "C" const char sti_hlt_at_hlt[];

[[nodiscard]] inline std::uint64_t rflags() noexcept {
    std::uint64_t value;
    asm volatile("pushfq; popq %0" : "=r"(value)::"memory");
    return value;
}
inline constexpr std::uint64_t kRflagsIF = 1u << 9;
inline constexpr std::uint64_t kRflagsTF = 1u << 8;
/// From the instruction after the next one on, each one ends in #DB, until the flag is cleared, here or in the frame of
/// a trap.
inline void set_trap_flag() noexcept {
    asm volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(kRflagsTF) : "memory", "cc");
}
inline void clear_trap_flag() noexcept {
    asm volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~kRflagsTF) : "memory", "cc");
}

/// RDTSC between LFENCEs: no earlier load is still open and no later one has begun.
[[nodiscard]] inline Tsc rdtsc_ordered() noexcept {
    std::uint32_t low, high;
    asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
    return {(std::uint64_t{high} << 32) | low};
}
[[nodiscard]] inline Tsc rdtsc() noexcept {
    std::uint32_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return {(std::uint64_t{high} << 32) | low};
}

/// ADD to memory without LOCK: one instruction where only this CPU writes the word. Its store releases, as every store
/// of this machine does.
inline void add(std::atomic<std::uint16_t>& word, std::uint16_t amount) noexcept {
    asm volatile("addw %1, %0" : "+m"(word) : "ri"(amount) : "memory", "cc");
}

/// All earlier stores are visible before anything that follows, also before a WRMSR that does not serialise.
inline void store_barrier() noexcept { asm volatile("mfence; lfence" ::: "memory"); }

inline void outb(std::uint16_t port, std::uint8_t value) noexcept {
    asm volatile("outb %0, %1" ::"a"(value), "Nd"(port) : "memory");
}
inline void outl(std::uint16_t port, std::uint32_t value) noexcept {
    asm volatile("outl %0, %1" ::"a"(value), "Nd"(port) : "memory");
}
inline void outw(std::uint16_t port, std::uint16_t value) noexcept {
    asm volatile("outw %0, %1" ::"a"(value), "Nd"(port) : "memory");
}
[[nodiscard]] inline std::uint8_t inb(std::uint16_t port) noexcept {
    std::uint8_t value;
    asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}
[[nodiscard]] inline std::uint32_t inl(std::uint16_t port) noexcept {
    std::uint32_t value;
    asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}
/// REP OUTSB: a FIFO's worth of bytes in one exit.
inline void outsb(std::uint16_t port, const char* data, std::size_t count) noexcept {
    asm volatile("cld; rep outsb" : "+S"(data), "+c"(count) : "d"(port) : "memory");
}

inline void invlpg(std::uint64_t address) noexcept { asm volatile("invlpg (%0)" ::"r"(address) : "memory"); }

/// Writes to `*destination` and nothing wider: device registers want exactly this access.
inline void mmio_write32(volatile std::uint32_t* destination, std::uint32_t value) noexcept {
    asm volatile("movl %1, %0" : "=m"(*destination) : "r"(value) : "memory");
}
[[nodiscard]] inline std::uint32_t mmio_read32(const volatile std::uint32_t* source) noexcept {
    std::uint32_t value;
    asm volatile("movl %1, %0" : "=r"(value) : "m"(*source) : "memory");
    return value;
}

} // namespace spinkick::x86
