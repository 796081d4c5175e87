// SPDX-License-Identifier: BSD-2-Clause
//
// Control registers (Intel SDM 3A 2.5).
#pragma once

#include <cstdint>

namespace spinkick::x86 {

[[nodiscard]] inline std::uint64_t read_cr2() noexcept {
    std::uint64_t value;
    asm volatile("movq %%cr2, %0" : "=r"(value));
    return value;
}
[[nodiscard]] inline std::uint64_t read_cr3() noexcept {
    std::uint64_t value;
    asm volatile("movq %%cr3, %0" : "=r"(value));
    return value;
}
inline void write_cr3(std::uint64_t value) noexcept { asm volatile("movq %0, %%cr3" ::"r"(value) : "memory"); }
[[nodiscard]] inline std::uint64_t read_cr4() noexcept {
    std::uint64_t value;
    asm volatile("movq %%cr4, %0" : "=r"(value));
    return value;
}
inline void write_cr4(std::uint64_t value) noexcept { asm volatile("movq %0, %%cr4" ::"r"(value) : "memory"); }
inline constexpr std::uint64_t kCr4MCE = 1u << 6;
/// CR8 is TPR[7:4] of the local APIC: interrupts of a class at or below it wait.
[[nodiscard]] inline std::uint64_t read_cr8() noexcept {
    std::uint64_t value;
    asm volatile("movq %%cr8, %0" : "=r"(value));
    return value;
}
inline void write_cr8(std::uint64_t value) noexcept { asm volatile("movq %0, %%cr8" ::"r"(value) : "memory"); }

} // namespace spinkick::x86
