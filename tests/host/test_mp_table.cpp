// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/mp_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/host/bytes.hpp"

namespace spinkick::x86 {
namespace {

using Data = std::vector<std::byte>;
using Builder = test::Bytes;
using test::poke;

constexpr std::uint64_t kRom = 0xf0000, kBaseMemoryEnd = 0x9fc00, kTable = 0x7000;

void mend(Data& data, std::size_t at) {
    data[at] = std::byte{0};
    unsigned sum = 0;
    for (const std::byte b : data)
        sum += static_cast<unsigned>(b);
    data[at] = static_cast<std::byte>(0u - sum);
}

Data pointer(unsigned default_configuration = 0) {
    Data data = Builder().text("_MP_").u32(kTable).u8(1).u8(4).u8(0).u8(default_configuration).zeros(4).data();
    mend(data, 10);
    return data;
}

Data processor(unsigned id, unsigned flags = 1) { return Builder().u8(0).u8(id).u8(0x14).u8(flags).zeros(16).data(); }
Data bus() { return Builder().u8(1).u8(0).text("ISA   ").data(); }

Data table(const std::vector<Data>& entries, std::size_t count) {
    Builder body;
    for (const auto& entry : entries)
        body.bytes(entry);
    Builder builder;
    builder.text("PCMP").u16(44 + body.size()).u8(4).u8(0).text("QBOOT   ").text("000000000000").u32(0).u16(0);
    Data data = builder.u16(count).u32(0xfee00000).zeros(4).bytes(body.data()).data();
    mend(data, 7);
    return data;
}

/// Memory below 1 MiB that has the pointer somewhere and the table at kTable.
struct Memory {
    std::map<std::uint64_t, Data> areas{{kBaseMemoryEnd, Data(0x400)}, {kRom, Data(0x10000)}};

    void place(std::uint64_t area, std::size_t offset, const Data& bytes) {
        std::copy(bytes.begin(), bytes.end(), areas.at(area).begin() + static_cast<std::ptrdiff_t>(offset));
    }
    [[nodiscard]] boot::PhysicalReader reader() {
        return {[](void* context, std::uint64_t address,
                   std::size_t size) noexcept -> std::optional<std::span<const std::byte>> {
                    auto& known = static_cast<Memory*>(context)->areas;
                    const auto area = known.find(address);
                    if (area == known.end() || area->second.size() < size)
                        return std::nullopt;
                    return std::span<const std::byte>(area->second).first(size);
                },
                this};
    }
};

Memory machine(const Data& configuration, std::uint64_t area = kRom, std::size_t offset = 0x40) {
    Memory memory;
    memory.place(area, offset, pointer());
    memory.areas[kTable] = configuration;
    return memory;
}

std::vector<std::uint32_t> table_ids(const MadtCpus& cpus) {
    std::vector<std::uint32_t> list;
    for (const auto id : cpus.cpus())
        list.push_back(raw(id));
    return list;
}

TEST(MpTable, ReadsProcessorsAndPassesOverTheRest) {
    auto memory = machine(table({processor(0, 3), processor(1), bus(), processor(4), processor(5, 0)}, 5));
    MadtCpus cpus;
    ASSERT_TRUE(read_mp_table(memory.reader(), ApicId{0}, cpus));
    EXPECT_TRUE(cpus.error.empty()) << cpus.error.view();
    EXPECT_EQ(table_ids(cpus), (std::vector<std::uint32_t>{0, 1, 4}));
    EXPECT_EQ(cpus.disabled, 1u);
    EXPECT_TRUE(cpus.boot_cpu_listed);
    EXPECT_EQ(cpus.lapic_address, 0xfee00000u);
}

TEST(MpTable, TheBootCpuIsFirstWhereverItStands) {
    auto memory = machine(table({processor(0), processor(1), processor(2, 3)}, 3), kBaseMemoryEnd, 0x3f0);
    MadtCpus cpus;
    ASSERT_TRUE(read_mp_table(memory.reader(), ApicId{2}, cpus));
    EXPECT_EQ(table_ids(cpus), (std::vector<std::uint32_t>{2, 0, 1}));
}

TEST(MpTable, ADefaultConfigurationHasTwoCpus) {
    Memory memory;
    memory.place(kRom, 0, pointer(5));
    MadtCpus cpus;
    ASSERT_TRUE(read_mp_table(memory.reader(), ApicId{0}, cpus));
    EXPECT_EQ(table_ids(cpus), (std::vector<std::uint32_t>{0, 1}));
}

TEST(MpTable, TheLengthCountsAndNotTheCount) {
    for (const std::size_t count : {0u, 1u, 60000u}) {
        auto memory = machine(table({processor(0), processor(1)}, count));
        MadtCpus cpus;
        ASSERT_TRUE(read_mp_table(memory.reader(), ApicId{0}, cpus));
        EXPECT_TRUE(cpus.error.empty()) << cpus.error.view();
        EXPECT_EQ(cpus.count, 2u);
    }
}

TEST(MpTable, NoPointerIsNoTable) {
    Memory memory;
    MadtCpus cpus;
    EXPECT_FALSE(read_mp_table(memory.reader(), ApicId{3}, cpus));
    EXPECT_EQ(table_ids(cpus), (std::vector<std::uint32_t>{3}));
    EXPECT_TRUE(cpus.error.empty());

    auto odd = pointer();
    odd[10] ^= std::byte{1}; // its checksum
    memory.place(kRom, 0, odd);
    EXPECT_FALSE(read_mp_table(memory.reader(), ApicId{3}, cpus));
    memory.place(kRom, 8, pointer()); // not at a multiple of 16
    EXPECT_FALSE(read_mp_table(memory.reader(), ApicId{3}, cpus));
}

TEST(MpTable, DamageIsNamedAndWhatCameBeforeItKept) {
    const auto read = [](const Data& configuration) {
        auto memory = machine(configuration);
        MadtCpus cpus;
        EXPECT_TRUE(read_mp_table(memory.reader(), ApicId{0}, cpus));
        return cpus;
    };
    auto wrong_sum = table({processor(0), processor(1)}, 2);
    wrong_sum[44 + 1] = std::byte{9};
    EXPECT_NE(read(wrong_sum).error.view().find("checksum"), std::string_view::npos);
    EXPECT_EQ(read(wrong_sum).count, 1u);

    const auto cut = read(table({processor(0), processor(1), Data(7)}, 3)); // a type 0 entry of 7 bytes
    EXPECT_NE(cut.error.view().find("offset 84 of 91 is cut"), std::string_view::npos) << cut.error.view();
    EXPECT_EQ(cut.count, 2u);

    EXPECT_NE(read(table({processor(0), Data(8, std::byte{9})}, 2)).error.view().find("no known type"),
              std::string_view::npos);
    auto longer = table({processor(0)}, 1);
    poke(longer, 4, std::uint16_t{60000});
    EXPECT_FALSE(read(longer).error.empty());
    poke(longer, 4, std::uint16_t{8});
    EXPECT_FALSE(read(longer).error.empty());
    auto named = table({processor(0)}, 1);
    named[0] = std::byte{'X'};
    EXPECT_FALSE(read(named).error.empty());
}

} // namespace
} // namespace spinkick::x86
