// SPDX-License-Identifier: BSD-2-Clause
//
// GDT and TSS of each CPU (Intel SDM 3A 3.4, 7.7). NMI, #DF and #MC have stacks of their own by the TSS's IST.
#pragma once

#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::x86::descriptors {

/// IST numbers as the IDT gates hold them; 0 is "no switch".
enum class Ist : std::uint8_t { none = 0, nmi = 1, double_fault = 2, machine_check = 3 };

/// Tops of the three stacks, virtual addresses.
struct IstStacks {
    std::uint64_t nmi, double_fault, machine_check;
};

/// Builds and loads GDT, TSS and segment registers of the calling CPU, and sets its GS base to `percpu_block`.
void load_this_cpu(CpuId cpu, void* percpu_block, const IstStacks& stacks) noexcept;

/// Where the next NMI of the calling CPU begins to push.
[[nodiscard]] std::uint64_t nmi_stack(CpuId cpu) noexcept;
void set_nmi_stack(CpuId cpu, std::uint64_t top) noexcept;

} // namespace spinkick::x86::descriptors
