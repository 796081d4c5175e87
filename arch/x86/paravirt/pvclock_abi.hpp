// SPDX-License-Identifier: BSD-2-Clause
//
// The time page that KVM and Xen share with a vCPU (Linux Documentation/virt/kvm/x86/msr.rst, MSR_KVM_SYSTEM_TIME_NEW;
// Xen xen/include/public/xen.h, vcpu_time_info: the same layout).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace spinkick::paravirt::pvclock_abi {

struct pvclock_vcpu_time_info {
    std::uint32_t version; ///< odd while the hypervisor writes
    std::uint32_t pad0;
    std::uint64_t tsc_timestamp;
    std::uint64_t system_time; ///< nanoseconds at tsc_timestamp
    std::uint32_t tsc_to_system_mul;
    std::int8_t tsc_shift;
    std::uint8_t flags;
    std::uint8_t pad[2];
};
static_assert(std::is_standard_layout_v<pvclock_vcpu_time_info> && sizeof(pvclock_vcpu_time_info) == 32);
static_assert(offsetof(pvclock_vcpu_time_info, tsc_timestamp) == 8 &&
              offsetof(pvclock_vcpu_time_info, system_time) == 16);
static_assert(offsetof(pvclock_vcpu_time_info, tsc_to_system_mul) == 24 &&
              offsetof(pvclock_vcpu_time_info, tsc_shift) == 28 && offsetof(pvclock_vcpu_time_info, flags) == 29);

inline constexpr std::uint8_t PVCLOCK_TSC_STABLE_BIT = 1 << 0;
inline constexpr std::uint8_t PVCLOCK_GUEST_STOPPED = 1 << 1;

} // namespace spinkick::paravirt::pvclock_abi
