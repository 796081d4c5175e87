// SPDX-License-Identifier: BSD-2-Clause
//
// What the hypervisor tells about vCPUs that do not run: KVM's steal-time page, Xen's runstate area. Each CPU registers
// its own; anybody reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "arch/x86/paravirt/kvm_abi.hpp"
#include "arch/x86/paravirt/xen_abi.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt::steal_time {

struct alignas(64) KvmPage {
    kvm_abi::kvm_steal_time shared;
};
static_assert(sizeof(KvmPage) == 64, "MSR_KVM_STEAL_TIME wants 64-byte alignment");

/// 64-byte slots: the 48 bytes that Xen writes never cross a page.
struct alignas(64) XenArea {
    xen_abi::vcpu_runstate_info shared;
};

namespace detail {
extern std::array<KvmPage, kMaxCpus> kvm_pages;
extern std::array<XenArea, kMaxCpus> xen_areas;
} // namespace detail

/// Registers this CPU; false if it is not offered, refused, or not written by the hypervisor.
bool init_kvm_this_cpu() noexcept;
bool init_xen_this_cpu(XenVcpuId vcpu) noexcept;

/// CPUs that are registered.
[[nodiscard]] std::uint32_t registered() noexcept;
/// True if `cpu` has a page that the hypervisor writes.
[[nodiscard]] bool is_registered(CpuId cpu) noexcept;

/// Time since registration in which `cpu` could have run and did not. Zero if unknown.
[[nodiscard]] Nanoseconds steal(CpuId cpu) noexcept;
/// True if the hypervisor took `cpu` off its physical CPU while it was runnable.
[[nodiscard]] bool is_preempted(CpuId cpu) noexcept;

/// The same by one hypervisor, for its back end; false before registration, since the pages start zeroed (and Xen's
/// state "running" is zero).
[[nodiscard]] inline bool is_preempted_by_kvm(CpuId cpu) noexcept {
    // Any bit: bit 1 only stands beside bit 0. Volatile: one byte that the host rewrites; nothing is ordered by it.
    const volatile auto& page = detail::kvm_pages[index(cpu)].shared;
    return page.preempted != 0;
}
[[nodiscard]] inline bool is_preempted_by_xen(CpuId cpu) noexcept {
    const volatile auto& area = detail::xen_areas[index(cpu)].shared;
    return area.state == xen_abi::RUNSTATE_runnable;
}

} // namespace spinkick::paravirt::steal_time
