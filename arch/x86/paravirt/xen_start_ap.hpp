// SPDX-License-Identifier: BSD-2-Clause
//
// Starting a vCPU of a Xen guest by hypercall: it enters in 64-bit mode, on page tables that its starter chose, without
// any code below 1 MiB.
#pragma once

#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::paravirt {

/// What it came to: 0, or Xen's negative error, with the call that gave it.
struct XenStart {
    std::int64_t error = 0;
    const char* call = "";

    [[nodiscard]] constexpr bool ok() const noexcept { return error == 0; }
};

/// Starts `vcpu` at `entry` (virtual) on the tables at `cr3`, which map it. `nx` sets EFER.NXE, as those tables may
/// need. Flat segments, interrupts masked, no stack.
[[nodiscard]] XenStart start_xen_vcpu(XenVcpuId vcpu, std::uint64_t entry, std::uint64_t cr3, bool nx) noexcept;

/// The vCPU that has this local APIC id: Xen gives vCPU n the id 2n (4.17, measured).
[[nodiscard]] constexpr XenVcpuId xen_vcpu_of(ApicId id) noexcept { return XenVcpuId{raw(id) / 2}; }

} // namespace spinkick::paravirt
