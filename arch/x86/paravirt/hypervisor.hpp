// SPDX-License-Identifier: BSD-2-Clause
//
// Which hypervisors show themselves in CPUID, all of them: KVM may stand behind Hyper-V's leaves, Xen behind
// Viridian's, and QEMU's own emulator has a name too. A block counts only if its head makes sense, since processors
// answer a leaf beyond the last one with the data of another leaf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/paravirt/hypervisor_abi.hpp"
#include "kernel/text.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt {

using x86::CpuidResult;

enum class HypervisorKind : std::uint8_t { kvm, xen, tcg, hyper_v, vmware, other };

/// One block of leaves.
struct HypervisorLeaves {
    HypervisorKind kind = HypervisorKind::other;
    std::uint32_t base = 0;
    std::uint32_t max_leaf = 0;       ///< highest leaf that may be read
    std::uint32_t claimed_max = 0;    ///< EAX of the base leaf as it stands
    std::array<char, 13> signature{}; ///< as text, with an end

    [[nodiscard]] constexpr bool has(std::uint32_t offset) const noexcept { return max_leaf - base >= offset; }
    /// "KVM", "Hyper-V"; of an unknown one its signature.
    [[nodiscard]] std::string_view name() const noexcept;
};

/// A feature or hint bit and what it is called.
struct CpuidBit {
    std::uint8_t bit;
    std::string_view name;
};

/// Bits of KVM's feature leaf, EAX and EDX.
enum class KvmFeature : std::uint8_t {
    CLOCKSOURCE = 0,
    NOP_IO_DELAY = 1,
    MMU_OP = 2,
    CLOCKSOURCE2 = 3,
    ASYNC_PF = 4,
    STEAL_TIME = 5,
    PV_EOI = 6,
    PV_UNHALT = 7,
    PV_TLB_FLUSH = 9,
    ASYNC_PF_VMEXIT = 10,
    PV_SEND_IPI = 11,
    POLL_CONTROL = 12,
    PV_SCHED_YIELD = 13,
    ASYNC_PF_INT = 14,
    MSI_EXT_DEST_ID = 15,
    HC_MAP_GPA_RANGE = 16,
    MIGRATION_CONTROL = 17,
    CLOCKSOURCE_STABLE_BIT = 24,
};
enum class KvmHint : std::uint8_t { REALTIME = 0 };

[[nodiscard]] std::span<const CpuidBit> kvm_feature_names() noexcept;
[[nodiscard]] std::span<const CpuidBit> kvm_hint_names() noexcept;

/// What the scan found.
struct Hypervisors {
    static constexpr std::size_t kMost = 8;

    bool bit_present = false; ///< CPUID.1:ECX[31]
    std::size_t count = 0;
    std::size_t left_out = 0; ///< blocks beyond kMost
    std::array<HypervisorLeaves, kMost> found{};

    std::uint32_t kvm_features = 0; ///< leaf base+1 EAX, 0 if KVM has no such leaf
    std::uint32_t kvm_hints = 0;    ///< leaf base+1 EDX
    std::uint32_t xen_version = 0;  ///< major << 16 | minor
    std::uint32_t xen_tsc_khz = 0;  ///< 0 if Xen does not say
    bool xen_emulates_tsc = false;
    std::uint32_t xen_hvm_flags = 0;

    [[nodiscard]] constexpr std::span<const HypervisorLeaves> all() const noexcept { return {found.data(), count}; }
    [[nodiscard]] constexpr const HypervisorLeaves* find(HypervisorKind kind) const noexcept {
        for (const auto& leaves : all())
            if (leaves.kind == kind)
                return &leaves;
        return nullptr;
    }
    [[nodiscard]] constexpr bool has(KvmFeature feature) const noexcept {
        return (kvm_features >> static_cast<unsigned>(feature) & 1) != 0;
    }
    [[nodiscard]] constexpr bool has(KvmHint hint) const noexcept {
        return (kvm_hints >> static_cast<unsigned>(hint) & 1) != 0;
    }
};

/// The 12 bytes of a base leaf as text; false if they are no name: not printable, empty, or text after a NUL.
[[nodiscard]] bool read_signature(const CpuidResult& leaf, std::array<char, 13>& text) noexcept;
[[nodiscard]] HypervisorKind kind_of(std::string_view signature) noexcept;

/// The scan over any source of CPUID data: CpuidResult cpuid(leaf, subleaf). Nothing is read unless CPUID.1:ECX[31] is
/// set.
template <class Cpuid>
[[nodiscard]] Hypervisors scan(Cpuid cpuid) noexcept {
    namespace abi = cpuid_abi;
    Hypervisors result;
    result.bit_present = (cpuid(1u, 0u).ecx >> 31 & 1) != 0;
    if (!result.bit_present)
        return result;

    for (std::uint32_t base = abi::kFirstBase; base <= abi::kLastBase; base += abi::kBlock) {
        const CpuidResult head = cpuid(base, 0u);
        HypervisorLeaves leaves;
        leaves.base = base;
        leaves.max_leaf = base;
        leaves.claimed_max = head.eax;
        if (!read_signature(head, leaves.signature))
            continue;
        leaves.kind = kind_of(leaves.signature.data());

        const bool in_block = head.eax >= base && head.eax < base + abi::kBlock;
        if (in_block)
            leaves.max_leaf = head.eax;
        // Old KVM says 0 and means its feature leaf.
        if (leaves.kind == HypervisorKind::kvm && head.eax == 0)
            leaves.max_leaf = base + abi::kKvmFeatures;
        // An unknown name whose highest leaf lies elsewhere is the echo of some other leaf. A known name is believed,
        // its absurd EAX is not: only the base leaf may then be read.
        if (!in_block && leaves.kind == HypervisorKind::other)
            continue;
        if (result.find(leaves.kind) != nullptr && leaves.kind != HypervisorKind::other)
            continue; // the first one counts

        if (result.count == Hypervisors::kMost) {
            ++result.left_out;
            continue;
        }
        result.found[result.count++] = leaves;
    }

    if (const auto* kvm = result.find(HypervisorKind::kvm); kvm != nullptr && kvm->has(abi::kKvmFeatures)) {
        const CpuidResult leaf = cpuid(kvm->base + abi::kKvmFeatures, 0u);
        result.kvm_features = leaf.eax;
        result.kvm_hints = leaf.edx;
    }
    if (const auto* xen = result.find(HypervisorKind::xen); xen != nullptr) {
        if (xen->has(abi::kXenVersion))
            result.xen_version = cpuid(xen->base + abi::kXenVersion, 0u).eax;
        if (xen->has(abi::kXenTime)) {
            const CpuidResult leaf = cpuid(xen->base + abi::kXenTime, 0u);
            result.xen_tsc_khz = leaf.ecx;
            result.xen_emulates_tsc = (leaf.eax & abi::kXenEmulatesTsc) != 0;
        }
        if (xen->has(abi::kXenHvm))
            result.xen_hvm_flags = cpuid(xen->base + abi::kXenHvm, 0u).eax;
    }
    return result;
}

/// Appends the names of the bits that are set, and "bitN" for one that has no name.
void append_bits(TextBuffer& out, std::uint32_t value, std::span<const CpuidBit> names) noexcept;
/// Appends "Hyper-V@0x40000000 KVM@0x40000100", or "none", or "unknown" if only the bit is set.
void append_hypervisors(TextBuffer& out, const Hypervisors& hypervisors) noexcept;

/// Which spinlock a Linux guest (6.12) would run here.
enum class LinuxLock : std::uint8_t { native_queued, pv_queued, test_and_set, unknown };
struct LinuxLockChoice {
    LinuxLock lock = LinuxLock::unknown;
    FixedText<160> reason;
};
[[nodiscard]] std::string_view name(LinuxLock lock) noexcept;
[[nodiscard]] LinuxLockChoice linux_lock_choice(const Hypervisors& hypervisors, std::uint32_t cpus) noexcept;

/// Scans this machine and keeps the result; boot CPU, once, needs nothing but CPUID.
void detect() noexcept;
[[nodiscard]] const Hypervisors& hypervisors() noexcept;
/// This CPU's own vCPU number as Xen's leaf says it; false if the leaf has none.
[[nodiscard]] bool read_own_xen_vcpu_id(XenVcpuId& id) noexcept;
/// Writes every hypervisor leaf as it stands, one line each.
void log_leaves() noexcept;
/// Writes what was found, leaves and features by name, and Linux's choice, one line each.
void log_hypervisors(std::uint32_t cpus) noexcept;

} // namespace spinkick::paravirt
