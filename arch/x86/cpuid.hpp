// SPDX-License-Identifier: BSD-2-Clause
//
// CPUID (Intel SDM 2A, CPUID). Hypervisor leaves are in arch/x86/paravirt/hypervisor.
#pragma once

#include <cstdint>

#include "arch/x86/xen_pv/active.hpp"
#include "kernel/types.hpp"

namespace spinkick::x86 {

struct CpuidResult {
    std::uint32_t eax, ebx, ecx, edx;
};

/// CPUID behind the forced-emulation prefix (ud2; "xen"): without it a Xen PV guest sees the host's leaves. Out of
/// line, since a disassembler takes the prefix for instructions that it is not.
[[nodiscard]] [[gnu::noinline]] inline CpuidResult forced_emulation_cpuid(std::uint32_t leaf,
                                                                          std::uint32_t subleaf) noexcept {
    CpuidResult r{};
    asm volatile(".byte 0x0f, 0x0b, 0x78, 0x65, 0x6e; cpuid"
                 : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
                 : "a"(leaf), "c"(subleaf));
    return r;
}

/// Executes CPUID. A leaf above the maximum returns data of another leaf on Intel: ask max_basic_leaf() first.
[[nodiscard]] inline CpuidResult cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) noexcept {
    CpuidResult r{};
    if (xen_pv::is_active())
        return forced_emulation_cpuid(leaf, subleaf);
    asm volatile("cpuid" : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx) : "a"(leaf), "c"(subleaf));
    return r;
}

[[nodiscard]] inline std::uint32_t max_basic_leaf() noexcept { return cpuid(0).eax; }
[[nodiscard]] inline std::uint32_t max_extended_leaf() noexcept { return cpuid(0x80000000).eax; }

/// CPUID.1:ECX[31]: a hypervisor is present.
[[nodiscard]] inline bool has_hypervisor() noexcept { return (cpuid(1).ecx >> 31) & 1; }
/// CPUID.1:ECX[21].
[[nodiscard]] inline bool has_x2apic() noexcept { return (cpuid(1).ecx >> 21) & 1; }
/// CPUID.0x80000007:EDX[8]: the TSC runs at one rate in every state.
[[nodiscard]] inline bool has_invariant_tsc() noexcept {
    return max_extended_leaf() >= 0x80000007 && ((cpuid(0x80000007).edx >> 8) & 1);
}
/// CPUID.0x80000001:EDX[20].
[[nodiscard]] inline bool has_nx() noexcept { return (cpuid(0x80000001).edx >> 20) & 1; }

/// This CPU's APIC id without asking the APIC: EDX of leaf 0xb where it has data, else leaf 1 EBX[31:24], which is 8
/// bits wide.
[[nodiscard]] inline ApicId initial_apic_id() noexcept {
    if (max_basic_leaf() >= 0xb)
        if (const auto r = cpuid(0xb); r.ebx != 0)
            return ApicId{r.edx};
    return ApicId{cpuid(1).ebx >> 24};
}

enum class Vendor : std::uint8_t { intel, amd, other };

/// Read on the spot, never cached: it decides the hypercall instruction before anything else is set up.
[[nodiscard]] inline Vendor vendor() noexcept {
    const auto r = cpuid(0);
    if (r.ebx == 0x756e6547 && r.edx == 0x49656e69 && r.ecx == 0x6c65746e)
        return Vendor::intel; // "GenuineIntel"
    if (r.ebx == 0x68747541 && r.edx == 0x69746e65 && r.ecx == 0x444d4163)
        return Vendor::amd; // "AuthenticAMD"
    if (r.ebx == 0x6f677948 && r.edx == 0x6e65476e && r.ecx == 0x656e6975)
        return Vendor::amd; // "HygonGenuine"
    return Vendor::other;
}

} // namespace spinkick::x86
