// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen_memory_map.hpp"

#include <array>

#include "arch/x86/paravirt/hypercall.hpp"

namespace spinkick::paravirt {
namespace {

constinit std::array<xen_abi::e820entry, 128> entries{};

} // namespace

XenMemoryMap xen_memory_map(std::span<XenMemoryRange> out) noexcept {
    xen_abi::xen_memory_map argument{static_cast<std::uint32_t>(entries.size()), 0,
                                     reinterpret_cast<std::uint64_t>(entries.data())};
    const auto result = xen_hypercall(xen_abi::Hypercall::memory_op, xen_abi::XENMEM_memory_map,
                                      reinterpret_cast<std::uint64_t>(&argument));
    XenMemoryMap map;
    map.result = result.value;
    map.faulted = result.fault.happened;
    if (!result.ok())
        return map;
    for (std::size_t i = 0; i < argument.nr_entries && i < entries.size() && map.count < out.size(); ++i)
        out[map.count++] = {entries[i].addr, entries[i].size, entries[i].type};
    return map;
}

} // namespace spinkick::paravirt
