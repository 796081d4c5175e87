// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/acpi_tables.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "tests/host/bytes.hpp"

namespace spinkick::x86 {
namespace {

using Data = std::vector<std::byte>;
using Builder = test::Bytes;
using test::poke;

void fix_checksum(Data& data, std::size_t at, std::size_t size) {
    data[at] = std::byte{0};
    unsigned sum = 0;
    for (std::size_t i = 0; i < size; ++i)
        sum += static_cast<unsigned>(data[i]);
    data[at] = static_cast<std::byte>(0u - sum);
}

Data table(std::string_view signature, const Data& body) {
    Builder builder;
    builder.text(signature)
        .u32(36 + body.size())
        .u8(4)
        .u8(0)
        .text("BOCHS ")
        .text("BXPC    ")
        .u32(1)
        .text("BXPC")
        .u32(1);
    Data data = builder.bytes(body).data();
    fix_checksum(data, 9, data.size());
    return data;
}

Data rsdp(std::uint8_t revision, std::uint32_t rsdt, std::uint64_t xsdt, std::uint32_t length = 36) {
    Builder builder;
    builder.text("RSD PTR ").u8(0).text("BOCHS ").u8(revision).u32(rsdt);
    if (revision >= 2)
        builder.u32(length).u64(xsdt).u8(0).zeros(3);
    Data data = builder.data();
    fix_checksum(data, 8, 20);
    if (revision >= 2)
        fix_checksum(data, 32, 36);
    return data;
}

/// Rows of a MADT.
class Madt {
  public:
    Madt& apic(unsigned id, bool enabled = true) {
        body_.u8(0).u8(8).u8(id).u8(id).u32(enabled ? 1 : 0);
        return *this;
    }
    Madt& x2apic(std::uint32_t id, bool enabled = true) {
        body_.u8(9).u8(16).u16(0).u32(id).u32(enabled ? 1 : 0).u32(id);
        return *this;
    }
    Madt& lapic_address(std::uint64_t address) {
        body_.u8(5).u8(12).u16(0).u64(address);
        return *this;
    }
    Madt& raw(const Data& bytes) {
        body_.bytes(bytes);
        return *this;
    }
    [[nodiscard]] Data finish() const {
        return table("APIC", Builder().u32(0xfee00000).u32(1).bytes(body_.data()).data());
    }

  private:
    Builder body_;
};

std::unique_ptr<MadtCpus> parsed(const Data& data, std::uint32_t boot = 0) {
    auto cpus = std::make_unique<MadtCpus>();
    const Data exact(data); // a heap block of its exact size: a read beyond it is AddressSanitizer's to find
    parse_madt(exact, ApicId{boot}, *cpus);
    EXPECT_GE(cpus->count, 1u);
    EXPECT_LE(cpus->count, kMaxCpus);
    EXPECT_EQ(cpus->ids[0], ApicId{boot});
    return cpus;
}

std::vector<std::uint32_t> ids(const MadtCpus& cpus) {
    std::vector<std::uint32_t> all;
    for (const ApicId id : cpus.cpus())
        all.push_back(raw(id));
    return all;
}
using Ids = std::vector<std::uint32_t>;

TEST(Madt, DenseIndexOverSparseIds) {
    const auto cpus = parsed(Madt().apic(0).apic(1).apic(2).apic(4).apic(5).apic(6).finish());
    EXPECT_EQ(ids(*cpus), (Ids{0, 1, 2, 4, 5, 6}));
    EXPECT_EQ(cpus->found, 6u);
    EXPECT_TRUE(cpus->boot_cpu_listed);
    EXPECT_EQ(cpus->lapic_address, 0xfee00000u);
    EXPECT_TRUE(cpus->error.empty()) << cpus->error.view();
}

TEST(Madt, TheBootCpuIsIndex0WhateverItsIdAndPlace) {
    EXPECT_EQ(ids(*parsed(Madt().apic(0).apic(2).apic(4).apic(6).finish(), 4)), (Ids{4, 0, 2, 6}));
    const auto missing = parsed(Madt().apic(0).apic(2).finish(), 9);
    EXPECT_EQ(ids(*missing), (Ids{9, 0, 2}));
    EXPECT_FALSE(missing->boot_cpu_listed);
    EXPECT_EQ(missing->found, 2u);
}

TEST(Madt, X2apicEntriesAlone) { // as Xen's PVH dom0: APIC id = 2 x vCPU
    const auto cpus = parsed(Madt().x2apic(0).x2apic(2).x2apic(4).x2apic(287).finish());
    EXPECT_EQ(ids(*cpus), (Ids{0, 2, 4, 287}));
}

TEST(Madt, TheSameCpuInBothTypesCountsOnceInEitherOrder) {
    const auto first = parsed(Madt().apic(0).apic(1).x2apic(0).x2apic(1).x2apic(300).finish());
    EXPECT_EQ(ids(*first), (Ids{0, 1, 300}));
    EXPECT_EQ(first->duplicates, 2u);
    EXPECT_EQ(first->found, 3u);
    const auto second = parsed(Madt().x2apic(1).x2apic(0).apic(1).apic(0).apic(1).finish());
    EXPECT_EQ(ids(*second), (Ids{0, 1}));
    EXPECT_EQ(second->duplicates, 3u);
}

TEST(Madt, DisabledEntriesAreSkippedAndCounted) {
    Madt madt;
    madt.apic(0).apic(1);
    for (unsigned id = 2; id < 7; ++id)
        madt.apic(id, false);
    const auto cpus = parsed(madt.x2apic(300, false).finish());
    EXPECT_EQ(ids(*cpus), (Ids{0, 1}));
    EXPECT_EQ(cpus->disabled, 6u);
    EXPECT_EQ(cpus->found, 2u);
    // The online-capable flag (bit 1) alone does not make a CPU that can be started now.
    const auto capable = parsed(Madt().apic(0).raw(Builder().u8(0).u8(8).u8(1).u8(1).u32(2).data()).finish());
    EXPECT_EQ(capable->disabled, 1u);
}

TEST(Madt, BroadcastIdsAreNoCpus) {
    const auto cpus = parsed(Madt().apic(0).apic(0xff).apic(0xff, false).x2apic(0xffffffff).x2apic(0xff).finish());
    EXPECT_EQ(ids(*cpus), (Ids{0, 0xff})); // 0xff is a CPU in x2APIC mode
    EXPECT_EQ(cpus->disabled, 0u);
}

TEST(Madt, MoreCpusThanTheLimit) {
    Madt madt;
    for (unsigned id = 0; id < 255; ++id)
        madt.apic(id);
    for (std::uint32_t id = 255; id < 288; ++id)
        madt.x2apic(id);
    const auto cpus = parsed(madt.finish(), 287); // the boot CPU is the last one and is kept
    EXPECT_EQ(cpus->count, kMaxCpus);
    EXPECT_EQ(cpus->found, 288u);
    EXPECT_EQ(cpus->over_limit, 288u - kMaxCpus);
    EXPECT_EQ(raw(cpus->ids[0]), 287u);
    EXPECT_EQ(raw(cpus->ids[1]), 0u);
    EXPECT_TRUE(cpus->boot_cpu_listed);
}

TEST(Madt, TheAddressOverrideWins) {
    EXPECT_EQ(parsed(Madt().apic(0).lapic_address(0x1fee00000).finish())->lapic_address, 0x1fee00000u);
}

TEST(Madt, UnknownEntriesArePassedOver) {
    const auto io_apic = Builder().u8(1).u8(12).zeros(10).data();
    const auto future = Builder().u8(0x7f).u8(2).data();
    const auto cpus = parsed(Madt().apic(0).raw(io_apic).raw(future).apic(3).finish());
    EXPECT_EQ(ids(*cpus), (Ids{0, 3}));
    EXPECT_TRUE(cpus->error.empty());
}

TEST(Madt, AnEntryThatIsCutIsAnErrorAndWhatStandsBeforeItIsKept) {
    const auto whole = Builder().u8(9).u8(16).u16(0).u32(7).u32(1).u32(7).data();
    for (std::size_t size = 1; size < whole.size(); ++size) {
        const auto cpus =
            parsed(Madt().apic(0).apic(1).raw({whole.begin(), whole.begin() + static_cast<long>(size)}).finish());
        EXPECT_EQ(ids(*cpus), (Ids{0, 1})) << size;
        EXPECT_EQ(cpus->error.view(), size == 1 ? "ACPI table APIC: ends inside the entry at offset 60"
                                                : "ACPI table APIC: entry of type 9 at offset 60 has the length 16, " +
                                                      std::to_string(size) + " are left");
    }
}

TEST(Madt, ALengthThatIsTooShortEndsOrSkips) {
    for (const unsigned length : {0u, 1u}) { // a walk would stand still
        const auto cpus =
            parsed(Madt().apic(0).apic(1).raw(Builder().u8(0).u8(length).zeros(40).data()).apic(2).finish());
        EXPECT_EQ(ids(*cpus), (Ids{0, 1}));
        EXPECT_EQ(cpus->error.view(),
                  "ACPI table APIC: entry of type 0 at offset 60 has the length " + std::to_string(length));
    }
    for (unsigned length = 2; length < 8; ++length) { // its fields are missing, the next entry is not
        const auto cpus =
            parsed(Madt().apic(0).raw(Builder().u8(0).u8(length).zeros(length - 2).data()).apic(2).finish());
        EXPECT_EQ(ids(*cpus), (Ids{0, 2})) << length;
        EXPECT_EQ(cpus->error.view(), "ACPI table APIC: entry of type 0 at offset 52 has the length " +
                                          std::to_string(length) + ", too short");
    }
}

TEST(Madt, ATableThatIsCutGivesTheBootCpuAlone) {
    const Data whole = Madt().apic(0).apic(1).x2apic(2).lapic_address(0x1000).finish();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto cpus = parsed({whole.begin(), whole.begin() + static_cast<long>(size)}, 1);
        EXPECT_EQ(ids(*cpus), Ids{1}) << size;
        EXPECT_FALSE(cpus->error.empty()) << size;
    }
    // Bytes behind the table are not part of it.
    Data longer = whole;
    longer.insert(longer.end(), 64, std::byte{0x55});
    EXPECT_EQ(ids(*parsed(longer)), (Ids{0, 1, 2}));
}

TEST(Madt, AnyWrongByteIsSeen) {
    const Data whole = Madt().apic(0).apic(1).finish();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        Data bad = whole;
        bad[at] ^= std::byte{0x10};
        const auto cpus = parsed(bad);
        EXPECT_EQ(ids(*cpus), Ids{0}) << at;
        EXPECT_FALSE(cpus->error.empty()) << at;
    }
}

TEST(Madt, ErrorsNameTheThing) {
    const auto error = [](const Data& data) { return std::string(parsed(data)->error.view()); };
    EXPECT_EQ(error({}), "ACPI table: only 0 bytes, its header has 36");
    EXPECT_EQ(error(table("FACP", {})), "ACPI table FACP: is in the place of APIC");
    EXPECT_EQ(error(table("\x01\xff\nX", {})), "ACPI table ???X: is in the place of APIC");
    EXPECT_EQ(error(table("APIC", {})), "ACPI table APIC: length 36, needs 44");
    Data data = Madt().apic(0).finish();
    poke(data, 4, std::uint32_t{35});
    EXPECT_EQ(error(data), "ACPI table APIC: length 35 is outside 36..1048576");
    poke(data, 4, ~std::uint32_t{0});
    EXPECT_EQ(error(data), "ACPI table APIC: length 4294967295 is outside 36..1048576");
    poke(data, 4, std::uint32_t{53});
    EXPECT_EQ(error(data), "ACPI table APIC: length 53, only 52 bytes are readable");
    data = Madt().apic(0).finish();
    data[50] ^= std::byte{1};
    EXPECT_TRUE(error(data).starts_with("ACPI table APIC: the checksum over 52 bytes is off by 0x"));
}

TEST(Rsdp, BothRevisions) {
    const Rsdp old = parse_rsdp(rsdp(0, 0x7ffe1234, 0));
    EXPECT_EQ(old.rsdt, 0x7ffe1234u);
    EXPECT_EQ(old.xsdt, 0u);
    EXPECT_TRUE(old.error.empty());
    const Rsdp both = parse_rsdp(rsdp(2, 0x1000, 0x123456789abc));
    EXPECT_EQ(both.rsdt, 0x1000u);
    EXPECT_EQ(both.xsdt, 0x123456789abcu);
    EXPECT_TRUE(both.error.empty());
    const Rsdp xsdt_only = parse_rsdp(rsdp(2, 0, 0x2000)); // as QEMU's microvm
    EXPECT_TRUE(xsdt_only.usable());
    EXPECT_EQ(xsdt_only.rsdt, 0u);
    EXPECT_TRUE(xsdt_only.error.empty());
    // ACPI 1.0 in 36 readable bytes: what stands behind it is not looked at.
    Data padded = rsdp(0, 0x1000, 0);
    padded.resize(36, std::byte{0xaa});
    EXPECT_EQ(parse_rsdp(padded).rsdt, 0x1000u);
    EXPECT_EQ(parse_rsdp(padded).xsdt, 0u);
}

TEST(Rsdp, ABadSecondPartLeavesTheRsdt) {
    const Data whole = rsdp(2, 0x1000, 0x2000);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Rsdp cut = parse_rsdp(Bytes(Data(whole.begin(), whole.begin() + static_cast<long>(size))));
        EXPECT_EQ(cut.rsdt, size >= 20 ? 0x1000u : 0u) << size;
        EXPECT_EQ(cut.xsdt, 0u) << size;
        EXPECT_FALSE(cut.error.empty()) << size;
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
        Data bad = whole;
        bad[at] ^= std::byte{0x40};
        const Rsdp seen = parse_rsdp(bad);
        EXPECT_EQ(seen.usable(), at >= 20) << at;
        EXPECT_FALSE(seen.error.empty()) << at;
    }
}

TEST(Rsdp, ErrorsNameTheThing) {
    EXPECT_EQ(parse_rsdp({}).error.view(), "RSDP: only 0 bytes, needs 20");
    EXPECT_EQ(parse_rsdp(Data(36)).error.view(), "RSDP: no signature \"RSD PTR \"");
    EXPECT_EQ(parse_rsdp(rsdp(0, 0, 0)).error.view(), "RSDP: has neither an RSDT nor an XSDT");
    EXPECT_EQ(parse_rsdp(rsdp(2, 0, 0)).error.view(), "RSDP: has neither an RSDT nor an XSDT");
    EXPECT_EQ(parse_rsdp(rsdp(2, 1, 2, 20)).error.view(), "RSDP: length 20, 36 bytes are readable");
    EXPECT_EQ(parse_rsdp(rsdp(2, 1, 2, 0xffffffff)).error.view(), "RSDP: length 4294967295, 36 bytes are readable");
}

TEST(RootTable, BothWidths) {
    ErrorText error;
    const Data narrow = table("RSDT", Builder().u32(0x1000).u32(0).u32(0xfffff000).data());
    const RootTable rsdt = RootTable::parse(narrow, RootTable::Kind::rsdt, error);
    ASSERT_EQ(rsdt.size(), 3u);
    EXPECT_EQ(rsdt.entry(0), 0x1000u);
    EXPECT_EQ(rsdt.entry(1), 0u);
    EXPECT_EQ(rsdt.entry(2), 0xfffff000u);
    EXPECT_EQ(rsdt.entry(3), 0u);
    const Data wide = table("XSDT", Builder().u64(0x123456789000).u64(0x2000).data());
    const RootTable xsdt = RootTable::parse(wide, RootTable::Kind::xsdt, error);
    ASSERT_EQ(xsdt.size(), 2u);
    EXPECT_EQ(xsdt.entry(0), 0x123456789000u);
    EXPECT_EQ(xsdt.entry(1), 0x2000u);
    EXPECT_TRUE(error.empty()) << error.view();
    EXPECT_EQ(RootTable::parse(table("XSDT", {}), RootTable::Kind::xsdt, error).size(), 0u);
    EXPECT_TRUE(error.empty()) << error.view();
}

TEST(RootTable, BadTablesHaveNoEntries) {
    const Data whole = table("XSDT", Builder().u64(0x1000).u64(0x2000).data());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        ErrorText error;
        const Data cut(whole.begin(), whole.begin() + static_cast<long>(size));
        EXPECT_EQ(RootTable::parse(cut, RootTable::Kind::xsdt, error).size(), 0u) << size;
        EXPECT_FALSE(error.empty()) << size;
    }
    ErrorText error;
    const RootTable misnamed = RootTable::parse(table("DSDT", Builder().u64(1).data()), RootTable::Kind::xsdt, error);
    EXPECT_TRUE(misnamed.misnamed()); // Xen's PVH dom0 has such a one, with a right checksum
    EXPECT_EQ(misnamed.size(), 1u);
    EXPECT_TRUE(error.empty()) << error.view();
    const Data odd = table("XSDT", Builder().u64(0x1000).u32(0x2000).data());
    EXPECT_EQ(RootTable::parse(odd, RootTable::Kind::xsdt, error).size(), 1u);
    EXPECT_EQ(error.view(), "ACPI table XSDT: 4 bytes behind its last address");
}

Data fadt(std::uint32_t block, unsigned length, std::uint32_t flags, std::size_t size = 276) {
    Data body(size - 36);
    poke(body, 76 - 36, block);
    poke(body, 91 - 36, static_cast<std::uint8_t>(length));
    poke(body, 112 - 36, flags);
    return body;
}

TEST(Fadt, PmTimerPort) {
    const PmTimer timer = parse_fadt(table("FACP", fadt(0x608, 4, 0x84a5)));
    EXPECT_EQ(timer.port, 0x608u);
    EXPECT_FALSE(timer.is_32_bits);
    EXPECT_TRUE(timer.error.empty());
    EXPECT_TRUE(parse_fadt(table("FACP", fadt(0x608, 4, 1u << 8))).is_32_bits);
    EXPECT_EQ(parse_fadt(table("FACP", fadt(0x608, 4, 0, 116))).port, 0x608u); // ACPI 1.0
}

TEST(Fadt, TheExtendedAddressWins) {
    Data body = fadt(0x608, 4, 0);
    poke(body, 208 - 36, std::uint8_t{1});
    poke(body, 212 - 36, std::uint64_t{0xb008});
    EXPECT_EQ(parse_fadt(table("FACP", body)).port, 0xb008u);
    poke(body, 208 - 36, std::uint8_t{0}); // in memory
    EXPECT_EQ(parse_fadt(table("FACP", body)).port, 0u);
}

TEST(Fadt, NoTimer) {
    EXPECT_EQ(parse_fadt(table("FACP", fadt(0, 0, 0))).port, 0u);
    EXPECT_EQ(parse_fadt(table("FACP", fadt(0x608, 0, 0))).port, 0u);
    EXPECT_EQ(parse_fadt(table("FACP", fadt(0x608, 4, 1u << 20))).port, 0u); // hardware-reduced, as on microvm
    const PmTimer high = parse_fadt(table("FACP", fadt(0x10608, 4, 0)));
    EXPECT_EQ(high.port, 0u);
    EXPECT_EQ(high.error.view(), "ACPI table FACP: PM timer at port 0x10608");
    EXPECT_EQ(parse_fadt(table("FACP", Data(40))).error.view(), "ACPI table FACP: length 76, needs 116");
    const Data whole = table("FACP", fadt(0x608, 4, 0));
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(parse_fadt(Data(whole.begin(), whole.begin() + static_cast<long>(size))).port, 0u);
}

TEST(AcpiTables, SurviveAnyBytes) {
    std::mt19937 random(29);
    const Data madt = Madt()
                          .apic(0)
                          .x2apic(300)
                          .lapic_address(1)
                          .apic(4, false)
                          .raw(Builder().u8(1).u8(12).zeros(10).data())
                          .finish();
    for (int round = 0; round < 50000; ++round) {
        Data bytes = madt;
        for (std::uint_fast32_t i = 0, n = 1 + random() % 6; i < n; ++i)
            bytes[44 + random() % (bytes.size() - 44)] = static_cast<std::byte>(random());
        fix_checksum(bytes, 9, bytes.size()); // or nothing behind the checksum would ever be reached
        const auto cpus = parsed(bytes);
        const auto seen = cpus->cpus();
        for (std::size_t i = 0; i < seen.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                ASSERT_NE(seen[i], seen[j]);
    }
}

} // namespace
} // namespace spinkick::x86
