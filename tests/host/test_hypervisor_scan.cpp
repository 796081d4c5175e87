// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/host/fake_cpuid.hpp"

namespace spinkick::paravirt {
namespace {

constexpr std::uint32_t kUnhalt = 1u << 7;
// What the highest basic leaf may look like; processors answer leaves beyond the last one with it.
constexpr CpuidResult kEcho{0x00000340, 0x00000340, 0x00000000, 0x00000000};

TEST(HypervisorScan, BareMetalIsAskedNothing) {
    FakeCpuid cpuid(false);
    cpuid.head(0x40000000, "KVMKVMKVM", 0x40000001);
    const auto found = cpuid.scan();
    EXPECT_FALSE(found.bit_present);
    EXPECT_EQ(found.count, 0u);
    EXPECT_EQ(text_of(found), "none");
    EXPECT_EQ(cpuid.asked,
              std::vector<std::uint32_t>{1}); // hypervisor leaves of a machine without one are another leaf's data
}

TEST(HypervisorScan, Kvm) {
    FakeCpuid cpuid(true, kEcho);
    cpuid.head(0x40000000, "KVMKVMKVM", 0x40000001).leaf(0x40000001, {0x01007efb, 0, 0, 1});
    const auto found = cpuid.scan();
    ASSERT_EQ(found.count, 1u);
    EXPECT_EQ(text_of(found), "KVM@0x40000000");
    EXPECT_EQ(found.kvm_features, 0x01007efbu);
    EXPECT_TRUE(found.has(KvmFeature::PV_UNHALT));
    EXPECT_TRUE(found.has(KvmHint::REALTIME));
}

TEST(HypervisorScan, KvmThatSaysZeroMeansItsFeatureLeaf) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "KVMKVMKVM", 0).leaf(0x40000001, {kUnhalt, 0, 0, 0});
    const auto found = cpuid.scan();
    ASSERT_EQ(found.count, 1u);
    EXPECT_EQ(found.found[0].max_leaf, 0x40000001u);
    EXPECT_TRUE(found.has(KvmFeature::PV_UNHALT));
}

TEST(HypervisorScan, KvmBehindHyperV) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "Microsoft Hv", 0x40000006)
        .leaf(0x40000001, {0x31237648, 0, 0, 0}) // "Hv#1": no features of KVM
        .head(0x40000100, "KVMKVMKVM", 0x40000101)
        .leaf(0x40000101, {0x01007efb, 0, 0, 0});
    const auto found = cpuid.scan();
    EXPECT_EQ(text_of(found), "Hyper-V@0x40000000 KVM@0x40000100");
    EXPECT_EQ(found.kvm_features, 0x01007efbu);
}

TEST(HypervisorScan, FeaturesOfAnOldHostAtTheWrongLeafAreNotGuessed) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "Microsoft Hv", 0x40000006)
        .leaf(0x40000001, {0x01007efb, 0, 0, 0})
        .head(0x40000100, "KVMKVMKVM", 0)
        .leaf(0x40000101, {0, 0, 0, 0});
    const auto found = cpuid.scan();
    ASSERT_NE(found.find(HypervisorKind::kvm), nullptr);
    EXPECT_EQ(found.kvm_features, 0u);
}

TEST(HypervisorScan, Xen) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "XenVMMXenVMM", 0x40000005)
        .leaf(0x40000001, {0x00040011, 0, 0, 0})
        .leaf(0x40000003, {0, 0, 2096000, 0})
        .leaf(0x40000004, {0x5c, 3, 0, 0});
    const auto found = cpuid.scan();
    EXPECT_EQ(text_of(found), "Xen@0x40000000");
    EXPECT_EQ(found.xen_version, 0x00040011u);
    EXPECT_EQ(found.xen_tsc_khz, 2096000u);
    EXPECT_EQ(found.xen_hvm_flags, 0x5cu);
}

TEST(HypervisorScan, XenBehindViridian) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "Microsoft Hv", 0x40000006)
        .head(0x40000100, "XenVMMXenVMM", 0x40000105)
        .leaf(0x40000101, {0x00040011, 0, 0, 0});
    EXPECT_EQ(text_of(cpuid.scan()), "Hyper-V@0x40000000 Xen@0x40000100");
}

TEST(HypervisorScan, TcgIsNamedAndItsEchoesAreNot) {
    FakeCpuid cpuid(true, {0x0d, 0x756e6547, 0x6c65746e, 0x49656e69});
    cpuid.head(0x40000000, "TCGTCGTCGTCG", 0x40000001);
    EXPECT_EQ(text_of(cpuid.scan()), "TCG@0x40000000");
}

TEST(HypervisorScan, HiddenHypervisor) {
    FakeCpuid cpuid(true);
    const auto found = cpuid.scan();
    EXPECT_TRUE(found.bit_present);
    EXPECT_EQ(found.count, 0u);
    EXPECT_EQ(text_of(found), "unknown (CPUID.1:ECX[31] set, no name)");
}

TEST(HypervisorScan, UnknownNameIsKeptAsText) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "bhyve bhyve ", 0x40000000);
    EXPECT_EQ(text_of(cpuid.scan()), "bhyve bhyve @0x40000000");
}

TEST(HypervisorScan, AbsurdHighestLeafOfAKnownNameIsNotBelieved) {
    for (const std::uint32_t absurd : {0x3fffffffu, 0x40000100u, 0xffffffffu, 1u}) {
        FakeCpuid cpuid(true);
        cpuid.head(0x40000000, "KVMKVMKVM", absurd).leaf(0x40000001, {0xffffffff, 0, 0, 0xffffffff});
        const auto found = cpuid.scan();
        ASSERT_EQ(found.count, 1u) << absurd;
        EXPECT_EQ(found.found[0].max_leaf, 0x40000000u);
        EXPECT_EQ(found.found[0].claimed_max, absurd);
        EXPECT_EQ(found.kvm_features, 0u);
        EXPECT_EQ(std::count(cpuid.asked.begin(), cpuid.asked.end(), 0x40000001u), 0);
    }
}

TEST(HypervisorScan, AbsurdHighestLeafOfAnUnknownNameIsAnEcho) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "SomeText", 0x16);
    EXPECT_EQ(cpuid.scan().count, 0u);
}

TEST(HypervisorScan, NamesThatAreNone) {
    const auto is_name = [](const std::string& name) {
        FakeCpuid cpuid(true);
        cpuid.head(0x40000000, name, 0x40000000);
        return cpuid.scan().count == 1;
    };
    EXPECT_TRUE(is_name("A"));
    EXPECT_FALSE(is_name(""));
    EXPECT_FALSE(is_name(std::string("A\0B", 3)));
    EXPECT_FALSE(is_name("A\x01"));
    EXPECT_FALSE(is_name("A\x80"));
    EXPECT_FALSE(is_name("\x1b[2J"));
}

TEST(HypervisorScan, SameNameInEveryBlockCountsOnce) {
    FakeCpuid cpuid(true);
    for (std::uint32_t base = 0x40000000; base <= 0x4000ff00; base += 0x100)
        cpuid.head(base, "KVMKVMKVM", base + 1).leaf(base + 1, {base, 0, 0, 0});
    const auto found = cpuid.scan();
    EXPECT_EQ(text_of(found), "KVM@0x40000000");
    EXPECT_EQ(found.kvm_features, 0x40000000u);
}

TEST(HypervisorScan, MoreNamesThanRoom) {
    FakeCpuid cpuid(true);
    for (std::uint32_t i = 0; i < 20; ++i)
        cpuid.head(0x40000000 + i * 0x100, "Vendor" + std::to_string(i), 0x40000000 + i * 0x100);
    const auto found = cpuid.scan();
    EXPECT_EQ(found.count, Hypervisors::kMost);
    EXPECT_EQ(found.left_out, 20 - Hypervisors::kMost);
    EXPECT_NE(text_of(found).find("and 12 more"), std::string::npos);
}

TEST(HypervisorScan, LastBlockIsLookedAt) {
    FakeCpuid cpuid(true);
    cpuid.head(0x4000ff00, "KVMKVMKVM", 0x4000ff01).leaf(0x4000ff01, {kUnhalt, 0, 0, 0});
    EXPECT_EQ(text_of(cpuid.scan()), "KVM@0x4000ff00");
}

TEST(HypervisorScan, FeatureNames) {
    char storage[200];
    TextBuffer out(storage);
    append_bits(out, 1u << 7 | 1u << 8 | 1u << 24, kvm_feature_names());
    EXPECT_EQ(out.view(), "PV_UNHALT bit8 CLOCKSOURCE_STABLE_BIT");
    out.clear();
    append_bits(out, 0, kvm_feature_names());
    EXPECT_EQ(out.view(), "none");
}

struct LinuxCase {
    const char* what;
    bool bit;
    bool kvm;
    std::uint32_t features, hints, cpus;
    LinuxLock expected;
};

TEST(LinuxLockChoice, KvmInTheOrderOfItsRules) {
    for (const auto& c : {
             LinuxCase{"bare metal", false, false, 0, 0, 4, LinuxLock::native_queued},
             LinuxCase{"hidden", true, false, 0, 0, 4, LinuxLock::test_and_set},
             LinuxCase{"all there", true, true, kUnhalt, 0, 4, LinuxLock::pv_queued},
             LinuxCase{"no feature", true, true, 0x7b, 0, 4, LinuxLock::test_and_set},
             LinuxCase{"hint beats feature", true, true, kUnhalt, 1, 4, LinuxLock::native_queued},
             LinuxCase{"hint beats lack of feature", true, true, 0x7b, 1, 4, LinuxLock::native_queued},
             LinuxCase{"one CPU beats lack of feature", true, true, 0x7b, 0, 1, LinuxLock::native_queued},
         }) {
        FakeCpuid cpuid(c.bit);
        if (c.kvm)
            cpuid.head(0x40000000, "KVMKVMKVM", 0x40000001).leaf(0x40000001, {c.features, 0, 0, c.hints});
        const auto choice = linux_lock_choice(cpuid.scan(), c.cpus);
        EXPECT_EQ(choice.lock, c.expected) << c.what << ": " << choice.reason.c_str();
        EXPECT_FALSE(choice.reason.empty());
    }
}

TEST(LinuxLockChoice, TheHighestBaseDecides) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "Microsoft Hv", 0x40000006)
        .head(0x40000100, "KVMKVMKVM", 0x40000101)
        .leaf(0x40000101, {0x7b, 0, 0, 0});
    const auto choice = linux_lock_choice(cpuid.scan(), 2);
    EXPECT_EQ(choice.lock, LinuxLock::test_and_set);
    EXPECT_EQ(choice.reason.view(), "no PV_UNHALT: leaf 0x40000101 EAX=0x0000007b");
}

TEST(LinuxLockChoice, Xen) {
    FakeCpuid cpuid(true);
    cpuid.head(0x40000000, "XenVMMXenVMM", 0x40000005);
    EXPECT_EQ(linux_lock_choice(cpuid.scan(), 2).lock, LinuxLock::pv_queued);
    EXPECT_EQ(linux_lock_choice(cpuid.scan(), 1).lock, LinuxLock::native_queued);
}

} // namespace
} // namespace spinkick::paravirt
