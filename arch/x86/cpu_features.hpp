// SPDX-License-Identifier: BSD-2-Clause
//
// What CPUID says of a CPU's features, and whether every CPU says the same. A hypervisor may be configured so that they
// do not; code that was chosen by the boot CPU's answer would then fault on another CPU, or, worse, wait in another
// way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/types.hpp"

namespace spinkick::x86::cpu_features {

struct Word {
    const char* name; ///< as manuals write it
    std::uint32_t leaf, subleaf;
    enum class Register : std::uint8_t { eax, ebx, ecx, edx } from;
    std::uint32_t mask; ///< without bits that mirror the CPU's own control registers
};

/// Feature words of the Intel SDM (CPUID, volume 2A) and AMD's APM (volume 3, appendix E).
inline constexpr std::array kWords{
    Word{"1:ECX", 1, 0, Word::Register::ecx, ~(1u << 27)}, // OSXSAVE is CR4's
    Word{"1:EDX", 1, 0, Word::Register::edx, ~(1u << 9)},  // APIC is IA32_APIC_BASE's
    Word{"7:EBX", 7, 0, Word::Register::ebx, ~0u},
    Word{"7:ECX", 7, 0, Word::Register::ecx, ~(1u << 4)}, // OSPKE is CR4's
    Word{"7:EDX", 7, 0, Word::Register::edx, ~0u},
    Word{"0x80000001:ECX", 0x80000001, 0, Word::Register::ecx, ~0u},
    Word{"0x80000001:EDX", 0x80000001, 0, Word::Register::edx, ~(1u << 9)},
    Word{"0x80000007:EDX", 0x80000007, 0, Word::Register::edx, ~0u},
    Word{"0x80000008:EAX", 0x80000008, 0, Word::Register::eax, ~0u},
};
using Values = std::array<std::uint32_t, kWords.size()>;

struct Difference {
    std::size_t word = 0; ///< of kWords
    std::uint32_t boot = 0, other = 0;
};
/// The first word in which they differ.
[[nodiscard]] constexpr std::optional<Difference> difference(const Values& boot, const Values& other) noexcept {
    for (std::size_t i = 0; i < kWords.size(); ++i)
        if (boot[i] != other[i])
            return Difference{i, boot[i], other[i]};
    return std::nullopt;
}

/// On each CPU, the boot CPU first.
void note_this_cpu(CpuId cpu) noexcept;

struct Summary {
    std::uint32_t differing = 0; ///< CPUs
    CpuId first{};               ///< one of them
    Difference difference;
};
[[nodiscard]] Summary summary() noexcept;

} // namespace spinkick::x86::cpu_features
