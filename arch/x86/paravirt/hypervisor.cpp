// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/hypervisor.hpp"

#include "kernel/log.hpp"

namespace spinkick::paravirt {
namespace {

struct Known {
    std::string_view signature;
    HypervisorKind kind;
    std::string_view name;
};

// Kinds that this kernel has code for come with their kind; the others are known so that an absurd EAX does not hide
// them.
constexpr auto kKnown = std::to_array<Known>({
    {"KVMKVMKVM", HypervisorKind::kvm, "KVM"},
    {"XenVMMXenVMM", HypervisorKind::xen, "Xen"},
    {"TCGTCGTCGTCG", HypervisorKind::tcg, "TCG"},
    {"Microsoft Hv", HypervisorKind::hyper_v, "Hyper-V"},
    {"VMwareVMware", HypervisorKind::vmware, "VMware"},
});

constexpr auto kKvmFeatureNames = std::to_array<CpuidBit>({
    {0, "CLOCKSOURCE"},
    {1, "NOP_IO_DELAY"},
    {2, "MMU_OP"},
    {3, "CLOCKSOURCE2"},
    {4, "ASYNC_PF"},
    {5, "STEAL_TIME"},
    {6, "PV_EOI"},
    {7, "PV_UNHALT"},
    {9, "PV_TLB_FLUSH"},
    {10, "ASYNC_PF_VMEXIT"},
    {11, "PV_SEND_IPI"},
    {12, "POLL_CONTROL"},
    {13, "PV_SCHED_YIELD"},
    {14, "ASYNC_PF_INT"},
    {15, "MSI_EXT_DEST_ID"},
    {16, "HC_MAP_GPA_RANGE"},
    {17, "MIGRATION_CONTROL"},
    {24, "CLOCKSOURCE_STABLE_BIT"},
});
constexpr auto kKvmHintNames = std::to_array<CpuidBit>({{0, "REALTIME"}});

constinit Hypervisors found{};

/// The highest base wins, as in Linux: KVM above Hyper-V's leaves is KVM.
const HypervisorLeaves* linux_hypervisor(const Hypervisors& hypervisors) noexcept {
    const HypervisorLeaves* winner = nullptr;
    for (const auto& leaves : hypervisors.all())
        if (leaves.kind != HypervisorKind::tcg && leaves.kind != HypervisorKind::other)
            winner = &leaves;
    return winner;
}

} // namespace

std::string_view HypervisorLeaves::name() const noexcept {
    for (const auto& known : kKnown)
        if (known.kind == kind)
            return known.name;
    return signature.data();
}

std::span<const CpuidBit> kvm_feature_names() noexcept { return kKvmFeatureNames; }
std::span<const CpuidBit> kvm_hint_names() noexcept { return kKvmHintNames; }

bool read_signature(const CpuidResult& leaf, std::array<char, 13>& text) noexcept {
    text = {};
    bool ended = false;
    for (std::size_t i = 0; i < 12; ++i) {
        const std::uint32_t word = i < 4 ? leaf.ebx : i < 8 ? leaf.ecx : leaf.edx;
        const auto byte = static_cast<unsigned char>(word >> (i % 4 * 8));
        if (byte == 0) {
            ended = true;
            continue;
        }
        if (ended || byte < 0x20 || byte >= 0x7f)
            return false;
        text[i] = static_cast<char>(byte);
    }
    return text[0] != '\0';
}

HypervisorKind kind_of(std::string_view signature) noexcept {
    for (const auto& known : kKnown)
        if (known.signature == signature)
            return known.kind;
    return HypervisorKind::other;
}

void append_bits(TextBuffer& out, std::uint32_t value, std::span<const CpuidBit> names) noexcept {
    bool first = true;
    for (std::uint8_t bit = 0; bit < 32; ++bit) {
        if ((value >> bit & 1) == 0)
            continue;
        if (!first)
            out.append(' ');
        first = false;
        std::string_view text;
        for (const auto& entry : names)
            if (entry.bit == bit)
                text = entry.name;
        if (text.empty())
            format(out, "bit%u", unsigned{bit});
        else
            out.append(text);
    }
    if (first)
        out.append("none");
}

void append_hypervisors(TextBuffer& out, const Hypervisors& hypervisors) noexcept {
    if (hypervisors.count == 0)
        return out.append(hypervisors.bit_present ? "unknown (CPUID.1:ECX[31] set, no name)" : "none");
    bool first = true;
    for (const auto& leaves : hypervisors.all()) {
        if (!first)
            out.append(' ');
        first = false;
        out.append(leaves.name());
        format(out, "@0x%08x", leaves.base);
    }
    if (hypervisors.left_out != 0)
        format(out, " and %zu more", hypervisors.left_out);
}

std::string_view name(LinuxLock lock) noexcept {
    switch (lock) {
    case LinuxLock::native_queued:
        return "queued";
    case LinuxLock::pv_queued:
        return "pv-queued";
    case LinuxLock::test_and_set:
        return "tas";
    case LinuxLock::unknown:
        break;
    }
    return "unknown";
}

LinuxLockChoice linux_lock_choice(const Hypervisors& hypervisors, std::uint32_t cpus) noexcept {
    LinuxLockChoice choice;
    const auto choose = [&choice](LinuxLock lock) -> FixedText<160>& {
        choice.lock = lock;
        return choice.reason;
    };
    if (!hypervisors.bit_present) {
        choose(LinuxLock::native_queued).set("no hypervisor: CPUID.1:ECX[31] is 0");
        return choice;
    }
    const auto* winner = linux_hypervisor(hypervisors);
    if (winner == nullptr) {
        choose(LinuxLock::test_and_set).set("a hypervisor is present, and none that offers lock services");
        return choice;
    }
    switch (winner->kind) {
    case HypervisorKind::kvm:
        // In this order (Linux arch/x86/kernel/kvm.c): the hint is stronger than a missing feature.
        if (hypervisors.has(KvmHint::REALTIME))
            choose(LinuxLock::native_queued)
                .set("KVM_HINTS_REALTIME: leaf 0x%08x EDX=0x%08x", winner->base + 1, hypervisors.kvm_hints);
        else if (cpus == 1)
            choose(LinuxLock::native_queued).set("one CPU");
        else if (!hypervisors.has(KvmFeature::PV_UNHALT))
            choose(LinuxLock::test_and_set)
                .set("no PV_UNHALT: leaf 0x%08x EAX=0x%08x", winner->base + 1, hypervisors.kvm_features);
        else
            choose(LinuxLock::pv_queued)
                .set("PV_UNHALT: leaf 0x%08x EAX=0x%08x", winner->base + 1, hypervisors.kvm_features);
        break;
    case HypervisorKind::xen:
        if (cpus == 1)
            choose(LinuxLock::native_queued).set("one CPU");
        else
            choose(LinuxLock::pv_queued).set("Xen event channels: leaf 0x%08x", winner->base);
        break;
    case HypervisorKind::vmware:
        choose(LinuxLock::test_and_set).set("VMware offers no lock services");
        break;
    default:
        choose(LinuxLock::unknown).set("Hyper-V's own lock services are not looked at");
        break;
    }
    return choice;
}

void detect() noexcept {
    found = scan([](std::uint32_t leaf, std::uint32_t subleaf) { return x86::cpuid(leaf, subleaf); });
}

const Hypervisors& hypervisors() noexcept { return found; }

bool read_own_xen_vcpu_id(XenVcpuId& id) noexcept {
    namespace abi = cpuid_abi;
    const auto* xen = found.find(HypervisorKind::xen);
    if (xen == nullptr || !xen->has(abi::kXenHvm))
        return false;
    const auto leaf = x86::cpuid(xen->base + abi::kXenHvm);
    if ((leaf.eax & abi::kXenHvmHasVcpuId) == 0)
        return false;
    id = XenVcpuId{leaf.ebx};
    return true;
}

void log_leaves() noexcept {
    constexpr std::uint32_t kMost = 32; // no hypervisor has more; one that claims more is cut
    for (const auto& leaves : hypervisors().all())
        for (std::uint32_t leaf = leaves.base; leaf <= leaves.max_leaf && leaf < leaves.base + kMost; ++leaf) {
            const auto r = x86::cpuid(leaf);
            log("# leaf 0x%08x: EAX=0x%08x EBX=0x%08x ECX=0x%08x EDX=0x%08x", leaf, r.eax, r.ebx, r.ecx, r.edx);
        }
}

void log_hypervisors(std::uint32_t cpus) noexcept {
    char line[400];
    TextBuffer out(line);
    append_hypervisors(out, found);
    log("# hypervisors: %s", out.c_str());
    for (const auto& leaves : found.all()) {
        if (leaves.claimed_max != leaves.max_leaf)
            log("# %s@0x%08x: highest leaf said to be 0x%08x, read up to 0x%08x", leaves.signature.data(), leaves.base,
                leaves.claimed_max, leaves.max_leaf);
    }
    if (const auto* kvm = found.find(HypervisorKind::kvm); kvm != nullptr) {
        out.clear();
        append_bits(out, found.kvm_features, kKvmFeatureNames);
        log("# KVM features: leaf 0x%08x EAX=0x%08x: %s%s", kvm->base + 1, found.kvm_features, out.c_str(),
            found.kvm_features == 0 ? " (old host?)" : "");
        out.clear();
        append_bits(out, found.kvm_hints, kKvmHintNames);
        log("# KVM hints: leaf 0x%08x EDX=0x%08x: %s", kvm->base + 1, found.kvm_hints, out.c_str());
    }
    if (const auto* xen = found.find(HypervisorKind::xen); xen != nullptr)
        log("# Xen: version %u.%u, leaf 0x%08x EAX=0x%08x", found.xen_version >> 16, found.xen_version & 0xffff,
            xen->base + cpuid_abi::kXenHvm, found.xen_hvm_flags);
    const auto choice = linux_lock_choice(found, cpus);
    log("# Linux would choose: %s because %s", name(choice.lock).data(), choice.reason.c_str());
}

} // namespace spinkick::paravirt
