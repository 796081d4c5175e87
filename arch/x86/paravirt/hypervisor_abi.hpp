// SPDX-License-Identifier: BSD-2-Clause
//
// The hypervisor range of CPUID: leaf blocks of 0x100 from 0x40000000, each headed by a 12-byte name in EBX, ECX, EDX
// and its highest leaf in EAX (Linux Documentation/virt/kvm/x86/cpuid.rst, Xen xen/include/public/arch-x86/cpuid.h,
// Microsoft Hypervisor Top Level Functional Specification 2.4).
#pragma once

#include <cstdint>

namespace spinkick::paravirt::cpuid_abi {

inline constexpr std::uint32_t kFirstBase = 0x40000000;
inline constexpr std::uint32_t kLastBase = 0x4000ff00;
inline constexpr std::uint32_t kBlock = 0x100;

/// KVM, relative to its base.
inline constexpr std::uint32_t kKvmFeatures = 1; ///< EAX features, EDX hints

/// Xen, relative to its base.
inline constexpr std::uint32_t kXenVersion = 1;           ///< EAX = major << 16 | minor
inline constexpr std::uint32_t kXenHypercall = 2;         ///< EAX pages, EBX MSR that fills a hypercall page
inline constexpr std::uint32_t kXenTime = 3;              ///< sub-leaf 0: EAX flags, ECX = guest TSC in kHz
inline constexpr std::uint32_t kXenEmulatesTsc = 1u << 0; ///< of these flags: RDTSC is an exit
inline constexpr std::uint32_t kXenHvm = 4;               ///< EAX flags, EBX vCPU id, ECX domain id
inline constexpr std::uint32_t kXenHvmHasVcpuId = 1u << 3;
inline constexpr std::uint32_t kXenHvmHasDomainId = 1u << 4;

} // namespace spinkick::paravirt::cpuid_abi
