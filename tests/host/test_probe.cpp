// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/probe.hpp"

#include <gtest/gtest.h>

#include "tests/host/fake_cpuid.hpp"

namespace spinkick::paravirt {
namespace {

Hypervisors kvm_with(std::uint32_t features, std::uint32_t hints = 0) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "KVMKVMKVM", 0x40000001).leaf(0x40000001, {features, 0, 0, hints});
    return cpuid.scan();
}
Hypervisors xen() {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "XenVMMXenVMM", 0x40000005).leaf(0x40000001, {0x00040011, 0, 0, 0});
    return cpuid.scan();
}
Hypervisors tcg() {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "TCGTCGTCGTCG", 0x40000001);
    return cpuid.scan();
}

constexpr Options kAuto{};
constexpr Options with(ParavirtChoice paravirt) { return {paravirt, KickChoice::automatic}; }
constexpr Options with(KickChoice kick) { return {ParavirtChoice::automatic, kick}; }

TEST(ProbeKvm, SaysWhatItSaw) {
    const auto usable = probe_kvm(kvm_with(0x01007efb), 4, kAuto);
    EXPECT_EQ(usable.availability, Availability::usable);
    EXPECT_EQ(usable.fact.view(), "PV_UNHALT: leaf 0x40000001 EAX=0x01007efb");

    const auto lacking = probe_kvm(kvm_with(0x7b), 4, kAuto);
    EXPECT_EQ(lacking.availability, Availability::lacks_feature);
    EXPECT_EQ(lacking.fact.view(), "no PV_UNHALT: leaf 0x40000001 EAX=0x0000007b");

    const auto zero = probe_kvm(kvm_with(0), 4, kAuto);
    EXPECT_EQ(zero.fact.view(), "no PV_UNHALT: leaf 0x40000001 EAX=0x00000000 (old host?)");

    const auto absent = probe_kvm(tcg(), 4, kAuto);
    EXPECT_EQ(absent.availability, Availability::absent);
    EXPECT_EQ(absent.fact.view(), "no KVM: hypervisors TCG@0x40000000");
}

TEST(ProbeKvm, DedicatedHintLeavesItSelectable) {
    const auto probe = probe_kvm(kvm_with(0x01007efb, 1), 4, kAuto);
    EXPECT_EQ(probe.availability, Availability::advised_against);
    EXPECT_TRUE(runs(probe.availability));
    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb, 1), 4, with(ParavirtChoice::force)).availability, Availability::usable);
}

TEST(ProbeKvm, OneCpuKicksNobody) {
    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb), 1, kAuto).availability, Availability::single_cpu);
    EXPECT_EQ(probe_xen(xen(), 1, kAuto).availability, Availability::single_cpu);
}

TEST(ProbeKvm, ForceOverridesTheLackOfTheFeature) {
    EXPECT_EQ(probe_kvm(kvm_with(0x7b), 4, with(ParavirtChoice::force)).availability, Availability::usable);
    EXPECT_EQ(probe_kvm(tcg(), 4, with(ParavirtChoice::force)).availability, Availability::absent);
}

TEST(Probe, TheCommandLineSwitchesOff) {
    const auto off = with(ParavirtChoice::off);
    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb), 4, off).fact.view(), "switched off: pv=off");
    EXPECT_EQ(probe_xen(xen(), 4, off).availability, Availability::switched_off);
    EXPECT_EQ(probe_ipi(off).availability, Availability::usable);

    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb), 4, with(KickChoice::ipi)).fact.view(), "switched off: kick=ipi");
    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb), 4, with(KickChoice::evtchn)).availability, Availability::switched_off);
    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb), 4, with(KickChoice::remrd)).availability, Availability::usable);
    EXPECT_EQ(probe_kvm(kvm_with(0x01007efb), 4, with(KickChoice::hypercall)).availability, Availability::usable);
    EXPECT_EQ(probe_xen(xen(), 4, with(KickChoice::evtchn)).availability, Availability::usable);
    EXPECT_EQ(probe_xen(xen(), 4, with(KickChoice::remrd)).availability, Availability::switched_off);
    // What is not there is absent, whatever was asked for.
    EXPECT_EQ(probe_xen(kvm_with(0x01007efb), 4, off).availability, Availability::absent);
}

DefaultLock choose(const Hypervisors& h, std::uint32_t cpus, const Options& options) {
    return choose_default_lock(h, cpus, options, probe_kvm(h, cpus, options), probe_xen(h, cpus, options));
}

TEST(DefaultLockChoice, SaysWhichAndWhy) {
    const auto pv = choose(kvm_with(0x01007efb), 4, kAuto);
    EXPECT_EQ(pv.lock, "pv-queued");
    EXPECT_EQ(pv.backend, "kvm");
    EXPECT_EQ(pv.reason.view(), "PV_UNHALT: leaf 0x40000001 EAX=0x01007efb");

    EXPECT_EQ(choose(xen(), 4, kAuto).backend, "xen");
    EXPECT_EQ(choose(kvm_with(0x7b), 4, kAuto).lock, "tas");
    EXPECT_EQ(choose(tcg(), 4, kAuto).lock, "tas");
    EXPECT_EQ(choose(FakeCpuid(false).scan(), 4, kAuto).lock, "queued");
    EXPECT_EQ(choose(kvm_with(0x01007efb), 4, with(ParavirtChoice::off)).lock, "tas");
    EXPECT_EQ(choose(kvm_with(0x01007efb), 4, with(KickChoice::ipi)).backend, "ipi");

    const auto single = choose(kvm_with(0x01007efb), 1, kAuto);
    EXPECT_EQ(single.lock, "queued");
    EXPECT_EQ(single.reason.view(), "one CPU");

    const auto dedicated = choose(kvm_with(0x01007efb, 1), 4, kAuto);
    EXPECT_EQ(dedicated.lock, "queued");
    EXPECT_EQ(dedicated.backend, "native");
    EXPECT_EQ(dedicated.reason.view(), "dedicated hint: KVM_HINTS_REALTIME: leaf 0x40000001 EDX=0x00000001");
}

TEST(DefaultLockChoice, AFailedProofCounts) {
    const auto h = kvm_with(0x01007efb);
    Probe kvm;
    kvm.availability = Availability::does_not_work;
    kvm.fact.set("offered but does not work: vmcall raises #UD");
    const auto choice = choose_default_lock(h, 4, kAuto, kvm, probe_xen(h, 4, kAuto));
    EXPECT_EQ(choice.lock, "tas");
    EXPECT_EQ(choice.reason.view(), "virtual CPUs without a kick: offered but does not work: vmcall raises #UD");
}

} // namespace
} // namespace spinkick::paravirt
