// SPDX-License-Identifier: BSD-2-Clause
//
// The memory map of a Xen guest, asked from Xen itself: a PVH dom0 gets a start info of version 0, which has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spinkick::paravirt {

struct XenMemoryRange {
    std::uint64_t base;
    std::uint64_t size;
    std::uint32_t type; ///< as BIOS function E820: 1 RAM, 2 reserved, 3 ACPI, 4 NVS, 5 unusable
};

/// What XENMEM_memory_map came to.
struct XenMemoryMap {
    std::size_t count = 0;   ///< entries written
    std::int64_t result = 0; ///< Xen's answer, negative for an error
    bool faulted = false;    ///< the hypercall instruction raised an exception
};

/// Fills `out`. Needs traps and nothing else: boot page tables do.
[[nodiscard]] XenMemoryMap xen_memory_map(std::span<XenMemoryRange> out) noexcept;

} // namespace spinkick::paravirt
