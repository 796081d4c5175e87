// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/probe.hpp"

#include "arch/x86/xen_pv/active.hpp"

namespace spinkick::paravirt {
namespace {

/// True if the command line rules the back end out; says so in `probe`.
bool is_switched_off(Probe& probe, const Options& options, bool kick_is_of_this_backend) noexcept {
    if (options.paravirt == ParavirtChoice::off) {
        probe.availability = Availability::switched_off;
        probe.fact.set("switched off: pv=off");
        return true;
    }
    if (options.kick != KickChoice::automatic && !kick_is_of_this_backend) {
        probe.availability = Availability::switched_off;
        probe.fact.set("switched off: kick=%s", name(options.kick).data());
        return true;
    }
    return false;
}

void set_absent(Probe& probe, const Hypervisors& hypervisors, const char* wanted) noexcept {
    char line[120];
    TextBuffer out(line);
    append_hypervisors(out, hypervisors);
    probe.availability = Availability::absent;
    probe.fact.set("no %s: hypervisors %s", wanted, out.c_str());
}

} // namespace

std::string_view name(Availability availability) noexcept {
    switch (availability) {
    case Availability::usable:
        return "usable";
    case Availability::advised_against:
        return "advised against";
    case Availability::absent:
        return "absent";
    case Availability::lacks_feature:
        return "lacks the feature";
    case Availability::single_cpu:
        return "single CPU";
    case Availability::switched_off:
        return "switched off";
    case Availability::does_not_work:
        return "offered but does not work";
    }
    return "";
}

Probe probe_ipi(const Options&) noexcept {
    Probe probe;
    if (x86::xen_pv::is_active()) {
        probe.availability = Availability::absent;
        probe.fact.set("no local APIC: Xen PV guest");
        return probe;
    }
    probe.availability = Availability::usable;
    probe.fact.set("fixed IPI");
    return probe;
}

Probe probe_kvm(const Hypervisors& hypervisors, std::uint32_t cpus, const Options& options) noexcept {
    Probe probe;
    const auto* kvm = hypervisors.find(HypervisorKind::kvm);
    if (kvm == nullptr) {
        set_absent(probe, hypervisors, "KVM");
        return probe;
    }
    const bool own_kick = options.kick == KickChoice::hypercall || options.kick == KickChoice::remrd;
    if (is_switched_off(probe, options, own_kick))
        return probe;
    const bool force = options.paravirt == ParavirtChoice::force;
    const auto leaf = kvm->base + cpuid_abi::kKvmFeatures;
    if (!kvm->has(cpuid_abi::kKvmFeatures) && !force) {
        probe.availability = Availability::lacks_feature;
        probe.fact.set("no feature leaf: leaf 0x%08x EAX=0x%08x", kvm->base, kvm->claimed_max);
    } else if (!hypervisors.has(KvmFeature::PV_UNHALT) && !force) {
        probe.availability = Availability::lacks_feature;
        probe.fact.set("no PV_UNHALT: leaf 0x%08x EAX=0x%08x%s", leaf, hypervisors.kvm_features,
                       hypervisors.kvm_features == 0 ? " (old host?)" : "");
    } else if (cpus < 2) {
        probe.availability = Availability::single_cpu;
        probe.fact.set("one CPU: nobody to kick");
    } else if (hypervisors.has(KvmHint::REALTIME) && !force) {
        probe.availability = Availability::advised_against;
        probe.fact.set("KVM_HINTS_REALTIME: leaf 0x%08x EDX=0x%08x", leaf, hypervisors.kvm_hints);
    } else {
        probe.availability = Availability::usable;
        probe.fact.set("%s: leaf 0x%08x EAX=0x%08x", force ? "pv=force" : "PV_UNHALT", leaf, hypervisors.kvm_features);
    }
    return probe;
}

Probe probe_xen(const Hypervisors& hypervisors, std::uint32_t cpus, const Options& options) noexcept {
    Probe probe;
    const auto* xen = hypervisors.find(HypervisorKind::xen);
    if (xen == nullptr) {
        set_absent(probe, hypervisors, "Xen");
        return probe;
    }
    if (is_switched_off(probe, options, options.kick == KickChoice::evtchn))
        return probe;
    if (!xen->has(cpuid_abi::kXenHypercall) && options.paravirt != ParavirtChoice::force) {
        probe.availability = Availability::lacks_feature;
        probe.fact.set("no hypercall leaf: leaf 0x%08x EAX=0x%08x", xen->base, xen->claimed_max);
    } else if (cpus < 2) {
        probe.availability = Availability::single_cpu;
        probe.fact.set("one CPU: nobody to kick");
    } else {
        probe.availability = Availability::usable;
        probe.fact.set("event channels: leaf 0x%08x, Xen %u.%u", xen->base, hypervisors.xen_version >> 16,
                       hypervisors.xen_version & 0xffff);
    }
    return probe;
}

DefaultLock choose_default_lock(const Hypervisors& hypervisors, std::uint32_t cpus, const Options& options,
                                const Probe& kvm, const Probe& xen) noexcept {
    DefaultLock choice{"queued", "native", {}};
    const auto pv = [&choice](std::string_view backend, const Probe& probe) {
        choice.lock = "pv-queued";
        choice.backend = backend;
        choice.reason.set("%s", probe.fact.c_str());
    };
    if (cpus < 2) {
        choice.reason.set("one CPU");
    } else if (options.kick == KickChoice::ipi) {
        choice.lock = "pv-queued";
        choice.backend = "ipi";
        choice.reason.set("kick=ipi");
    } else if (kvm.availability == Availability::usable) {
        pv("kvm", kvm);
    } else if (xen.availability == Availability::usable) {
        pv("xen", xen);
    } else if (kvm.availability == Availability::advised_against) {
        choice.reason.set("dedicated hint: %s", kvm.fact.c_str());
    } else if (!hypervisors.bit_present) {
        choice.reason.set("no hypervisor: CPUID.1:ECX[31] is 0");
    } else {
        // A queue would hand the lock to waiters that the hypervisor has taken off their CPUs.
        const Probe& why = xen.availability != Availability::absent ? xen : kvm;
        choice.lock = "tas";
        choice.reason.set("virtual CPUs without a kick: %s", why.fact.c_str());
    }
    return choice;
}

} // namespace spinkick::paravirt
