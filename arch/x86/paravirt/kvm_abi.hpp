// SPDX-License-Identifier: BSD-2-Clause
//
// What KVM and its guests agree on (Linux Documentation/virt/kvm/x86/{hypercalls,msr}.rst; names as in the uapi header
// asm/kvm_para.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arch/x86/msr.hpp"

namespace spinkick::paravirt::kvm_abi {

/// Numbers in RAX.
enum class Hypercall : std::uint64_t {
    VAPIC_POLL_IRQ = 1,
    KICK_CPU = 5, ///< RBX flags 0, RCX APIC id; feature PV_UNHALT
    CLOCK_PAIRING = 9,
    SEND_IPI = 10,    ///< feature PV_SEND_IPI
    SCHED_YIELD = 11, ///< RBX APIC id; feature PV_SCHED_YIELD
};

/// Negative results.
inline constexpr std::int64_t KVM_EPERM = 1;
inline constexpr std::int64_t KVM_E2BIG = 7;
inline constexpr std::int64_t KVM_EFAULT = 14;
inline constexpr std::int64_t KVM_EINVAL = 22;
inline constexpr std::int64_t KVM_EOPNOTSUPP = 95;
inline constexpr std::int64_t KVM_ENOSYS = 1000;

inline constexpr x86::Msr MSR_KVM_WALL_CLOCK_NEW{0x4b564d00};  ///< CLOCKSOURCE2: physical address
inline constexpr x86::Msr MSR_KVM_SYSTEM_TIME_NEW{0x4b564d01}; ///< CLOCKSOURCE2: physical address | enable
inline constexpr x86::Msr MSR_KVM_STEAL_TIME{0x4b564d03};      ///< STEAL_TIME: physical address, 64-aligned | enable
inline constexpr x86::Msr MSR_KVM_PV_EOI_EN{0x4b564d04};       ///< PV_EOI: physical address, 4-aligned | enable
inline constexpr x86::Msr MSR_KVM_POLL_CONTROL{0x4b564d05};    ///< POLL_CONTROL: bit 0, the host may halt-poll
inline constexpr std::uint64_t kEnable = 1;

/// The page behind MSR_KVM_STEAL_TIME. The host rewrites it before it enters the vCPU and marks `preempted` when it
/// takes a running vCPU off its CPU.
struct kvm_steal_time {
    std::uint64_t steal;   ///< nanoseconds that the vCPU was runnable and did not run
    std::uint32_t version; ///< odd while the host writes
    std::uint32_t flags;
    std::uint8_t preempted;
    std::uint8_t u8_pad[3];
    std::uint32_t pad[11];
};
static_assert(std::is_standard_layout_v<kvm_steal_time> && sizeof(kvm_steal_time) == 64);
static_assert(offsetof(kvm_steal_time, version) == 8 && offsetof(kvm_steal_time, preempted) == 16);

inline constexpr std::uint8_t KVM_VCPU_PREEMPTED = 1 << 0;
inline constexpr std::uint8_t KVM_VCPU_FLUSH_TLB = 1 << 1;

} // namespace spinkick::paravirt::kvm_abi
