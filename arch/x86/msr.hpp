// SPDX-License-Identifier: BSD-2-Clause
//
// Model-specific registers. Numbers are enumerators, so that no function takes a bare integer for one.
#pragma once

#include <cstdint>
#include <optional>

namespace spinkick::x86 {

enum class Msr : std::uint32_t {
    IA32_TIME_STAMP_COUNTER = 0x10,
    IA32_APIC_BASE = 0x1b,
    IA32_PAT = 0x277,
    IA32_X2APIC_BASE = 0x800, ///< register n of the xAPIC page is MSR 0x800 + n / 16
    IA32_X2APIC_ICR = 0x830,
    IA32_EFER = 0xc0000080,
    IA32_FS_BASE = 0xc0000100,
    IA32_GS_BASE = 0xc0000101,
};

[[nodiscard]] inline std::uint64_t rdmsr(Msr msr) noexcept {
    std::uint32_t low, high;
    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(static_cast<std::uint32_t>(msr)) : "memory");
    return (std::uint64_t{high} << 32) | low;
}
inline void wrmsr(Msr msr, std::uint64_t value) noexcept {
    asm volatile("wrmsr" ::"c"(static_cast<std::uint32_t>(msr)), "a"(static_cast<std::uint32_t>(value)),
                 "d"(static_cast<std::uint32_t>(value >> 32))
                 : "memory");
}

/// RDMSR that may raise #GP: nullopt then. Needs trap handling (traps.hpp) to be up on this CPU.
[[nodiscard]] std::optional<std::uint64_t> rdmsr_safe(Msr msr) noexcept;
/// WRMSR that may raise #GP: false then, and nothing was written.
[[nodiscard]] bool wrmsr_safe(Msr msr, std::uint64_t value) noexcept;

} // namespace spinkick::x86
