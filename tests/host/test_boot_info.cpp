// SPDX-License-Identifier: BSD-2-Clause
#include "boot/boot_info.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "boot/multiboot2_info.hpp"
#include "boot/pvh_info.hpp"
#include "tests/host/bytes.hpp"

namespace spinkick::boot {
namespace {

using test::Bytes;
using test::poke;

/// Physical memory: regions by address, everything else is not there. Each region is a heap block of its exact size, so
/// that a read beyond it is AddressSanitizer's to find.
class FakeMemory {
  public:
    void place(std::uint64_t address, std::vector<std::byte> bytes) {
        bytes.shrink_to_fit();
        regions_[address] = std::move(bytes);
    }
    std::vector<std::byte>& at(std::uint64_t address) { return regions_.at(address); }

    [[nodiscard]] PhysicalReader reader() {
        return {[](void* context, std::uint64_t address, std::size_t size) noexcept {
                    return static_cast<FakeMemory*>(context)->read(address, size);
                },
                this};
    }

  private:
    std::optional<std::span<const std::byte>> read(std::uint64_t address, std::size_t size) const {
        auto region = regions_.upper_bound(address);
        if (region == regions_.begin())
            return std::nullopt;
        --region;
        const std::uint64_t offset = address - region->first;
        if (offset > region->second.size() || region->second.size() - offset < size)
            return std::nullopt;
        return std::span<const std::byte>(region->second).subspan(offset, size);
    }

    std::map<std::uint64_t, std::vector<std::byte>> regions_;
};

struct Result {
    std::unique_ptr<BootInfo> info = std::make_unique<BootInfo>();
    ErrorText error;
    bool ok = false;
};

using ReadFunction = bool (*)(std::uint64_t, const PhysicalReader&, BootInfo&, ErrorText&) noexcept;

Result read(ReadFunction function, FakeMemory& memory, std::uint64_t address) {
    Result result;
    result.ok = function(address, memory.reader(), *result.info, result.error);
    EXPECT_EQ(result.ok, result.error.empty()) << result.error.view();
    EXPECT_LT(result.info->command_line_size, BootInfo::kCommandLineBytes);
    EXPECT_EQ(result.info->command_line[result.info->command_line_size], '\0');
    EXPECT_LE(result.info->module_count, BootInfo::kMostModules);
    return result;
}

constexpr std::uint64_t kStart = 0x9000;
constexpr std::uint64_t kLine = 0xa000;
constexpr std::uint64_t kModules = 0xc000;
constexpr std::uint64_t kMap = 0xd000;

std::vector<std::byte> page_with(std::string_view text, std::size_t size = 4096) {
    Bytes bytes;
    bytes.text(text).zeros(size - text.size());
    return bytes.data();
}

std::vector<std::byte> start_info(std::uint32_t version, std::uint32_t modules = 1, std::uint32_t entries = 4) {
    Bytes bytes;
    bytes.u32(0x336ec578).u32(version).u32(3).u32(modules).u64(kModules).u64(kLine).u64(0x7ffe0014);
    if (version >= 1)
        bytes.u64(kMap).u32(entries).u32(0);
    return bytes.data();
}

FakeMemory pvh_memory(std::uint32_t version = 1) {
    FakeMemory memory;
    memory.place(kStart, start_info(version));
    memory.place(kLine, page_with("tests=lock.* end=1"));
    memory.place(kModules, Bytes().u64(0x4000000).u64(0x1000000).u64(0).u64(0).data());
    // Out of order, with an overlap and with qboot's empty entry.
    memory.place(kMap, Bytes()
                           .u64(0x100000)
                           .u64(0x7ef00000)
                           .u32(1)
                           .u32(0)
                           .u64(0)
                           .u64(0xa0000)
                           .u32(1)
                           .u32(0)
                           .u64(0x9fc00)
                           .u64(0x400)
                           .u32(2)
                           .u32(0)
                           .u64(0)
                           .u64(0)
                           .u32(0)
                           .u32(0)
                           .data());
    return memory;
}

TEST(PvhInfo, FlagsAreReadAheadOfTheRestAndOnlyFromAStartInfo) {
    auto memory = pvh_memory();
    EXPECT_EQ(read_pvh_flags(kStart, memory.reader()), 3u);
    EXPECT_EQ(read_pvh_flags(kLine, memory.reader()), 0u);     // no magic
    EXPECT_EQ(read_pvh_flags(0xdead000, memory.reader()), 0u); // nothing there
    memory.at(kStart).resize(8);
    EXPECT_EQ(read_pvh_flags(kStart, memory.reader()), 0u);
}

TEST(PvhInfo, ReadsVersion1) {
    auto memory = pvh_memory();
    const Result result = read(read_pvh_info, memory, kStart);
    ASSERT_TRUE(result.ok) << result.error.view();
    const BootInfo& info = *result.info;
    EXPECT_EQ(info.protocol, Protocol::pvh);
    EXPECT_EQ(info.command_line_view(), "tests=lock.* end=1");
    EXPECT_EQ(info.rsdp_paddr, 0x7ffe0014u);
    EXPECT_EQ(info.rsdp_copy_size, 0u);
    ASSERT_EQ(info.module_count, 1u);
    EXPECT_EQ(info.modules[0].base, 0x4000000u);
    EXPECT_EQ(info.modules[0].size, 0x1000000u);
    ASSERT_EQ(info.memory.ranges().size(), 3u);
    EXPECT_TRUE(info.memory.is_usable(0, 0x9fc00));
    EXPECT_FALSE(info.memory.is_usable(0, 0x9fc01));
    EXPECT_TRUE(info.memory.is_usable(0x100000, 0x7ef00000));
}

TEST(PvhInfo, Version0HasNoMemoryMapAndIsNotReadBeyondItsEnd) {
    auto memory = pvh_memory(0); // 40 bytes only
    const Result result = read(read_pvh_info, memory, kStart);
    ASSERT_TRUE(result.ok) << result.error.view();
    EXPECT_TRUE(result.info->memory.empty());
    EXPECT_EQ(result.info->command_line_view(), "tests=lock.* end=1");
    EXPECT_EQ(result.info->module_count, 1u);
}

TEST(PvhInfo, ALaterVersionIsReadAsVersion1) {
    auto memory = pvh_memory();
    poke(memory.at(kStart), 4, std::uint32_t{7});
    EXPECT_TRUE(read(read_pvh_info, memory, kStart).ok);
}

TEST(PvhInfo, NothingGivenIsNotAnError) {
    FakeMemory memory;
    memory.place(kStart, Bytes().u32(0x336ec578).u32(1).u32(0).u32(0).u64(0).u64(0).u64(0).u64(0).u32(0).u32(0).data());
    const Result result = read(read_pvh_info, memory, kStart);
    ASSERT_TRUE(result.ok) << result.error.view();
    EXPECT_EQ(result.info->command_line_view(), "");
    EXPECT_EQ(result.info->rsdp_paddr, 0u);
    EXPECT_TRUE(result.info->memory.empty());
}

TEST(PvhInfo, EveryCutIsAnError) {
    for (const std::uint64_t region : {kStart, kModules, kMap}) {
        const std::size_t whole = pvh_memory().at(region).size();
        for (std::size_t size = 0; size < whole; ++size) {
            auto memory = pvh_memory();
            auto cut = memory.at(region);
            cut.resize(size);
            memory.place(region, cut);
            EXPECT_FALSE(read(read_pvh_info, memory, kStart).ok) << std::hex << region << " cut at " << size;
        }
    }
}

TEST(PvhInfo, ErrorsNameTheThing) {
    const auto error = [](auto change) {
        auto memory = pvh_memory();
        change(memory);
        return std::string(read(read_pvh_info, memory, kStart).error.view());
    };
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 0, std::uint32_t{0x2badb002}); }),
              "start info at 0x9000: magic 0x2badb002, must be 0x336ec578");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 12, std::uint32_t{9}); }),
              "start info: 9 modules, at most 8 are kept");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 12, 0xffffffffu); }),
              "start info: 4294967295 modules, at most 8 are kept");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 16, ~0ull); }),
              "start info: module 0 of 1 at 0xffffffffffffffff is not readable");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kModules), 8, ~0ull); }),
              "start info: module 0 at 0x4000000 has the size 0xffffffffffffffff");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 48, 0xffffffffu); }),
              "start info: a memory map of 4294967295 entries, at most 4096 are believed");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 48, 5u); }),
              "start info: entry 4 of 5 of the memory map at 0xd060 is not readable");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 24, 0xdead0000ull); }),
              "command line: memory at 0xdead0000 is not readable");
    EXPECT_EQ(error([](FakeMemory& m) { poke(m.at(kStart), 24, ~0ull); }),
              "command line: memory at 0xffffffffffffffff is not readable");
}

TEST(PvhInfo, TheCommandLineIsReadPageByPage) {
    const std::string line = std::string(2000, 'x') + " end=1";
    constexpr std::uint64_t kAddress = 0x1eff0; // 16 bytes before the end of its page; nothing behind 0x20000
    const auto result = [&](std::uint64_t end) {
        auto memory = pvh_memory();
        poke(memory.at(kStart), 24, kAddress);
        auto bytes = Bytes().zeros(kAddress - 0x1e000).text(line).zeros(0x20000 - kAddress - line.size()).data();
        bytes.resize(end - 0x1e000);
        memory.place(0x1e000, bytes);
        return read(read_pvh_info, memory, kStart);
    };
    const Result good = result(0x20000);
    ASSERT_TRUE(good.ok) << good.error.view();
    EXPECT_EQ(good.info->command_line_view(), line);
    EXPECT_EQ(result(0x1f000).error.view(), "command line: memory at 0x1f000 is not readable");
}

TEST(PvhInfo, ALineThatIsTooLongIsAnErrorAndNotCut) {
    for (const std::size_t length : {std::size_t{4095}, std::size_t{4096}, std::size_t{9000}}) {
        auto memory = pvh_memory();
        memory.place(0x30000, page_with(std::string(length, 'x'), 3 * 4096));
        poke(memory.at(kStart), 24, std::uint64_t{0x30000});
        const Result result = read(read_pvh_info, memory, kStart);
        EXPECT_EQ(result.ok, length == 4095);
        EXPECT_EQ(result.info->command_line_size, length == 4095 ? 4095u : 0u);
        EXPECT_EQ(result.error.view(), length == 4095 ? "" : "command line: more than 4095 characters; shorten it");
    }
}

// Multiboot2

class Multiboot2 {
  public:
    Multiboot2& tag(std::uint32_t type, const std::vector<std::byte>& body) {
        tags_.u32(type).u32(8 + body.size()).bytes(body).align(8);
        return *this;
    }
    Multiboot2& raw(const std::vector<std::byte>& bytes) {
        tags_.bytes(bytes);
        return *this;
    }
    [[nodiscard]] std::vector<std::byte> finish() const {
        return Bytes().u32(8 + tags_.size() + 8).u32(0).bytes(tags_.data()).u32(0).u32(8).data();
    }

  private:
    Bytes tags_;
};

std::vector<std::byte> memory_map_body(std::uint32_t entry_size = 24) {
    Bytes bytes;
    bytes.u32(entry_size).u32(0);
    const auto entry = [&](std::uint64_t base, std::uint64_t length, std::uint32_t type) {
        bytes.u64(base).u64(length).u32(type).u32(0).zeros(entry_size - 24);
    };
    entry(0x100000, 0x700000, 1);
    entry(0, 0x9fc00, 1);
    entry(0xf0000, 0x10000, 2);
    return bytes.data();
}

std::vector<std::byte> efi_map_body(std::uint32_t descriptor_size = 48) {
    Bytes bytes;
    bytes.u32(descriptor_size).u32(1);
    const auto entry = [&](std::uint32_t type, std::uint64_t base, std::uint64_t pages) {
        bytes.u32(type).u32(0).u64(base).u64(0).u64(pages).u64(0xf).zeros(descriptor_size - 40);
    };
    entry(7, 0x100000, 0x700);
    entry(3, 0, 0xa0);
    entry(10, 0x808000, 4);
    entry(11, 0xffc00000, 0x400);
    entry(7, 0x1000000, ~0ull);
    return bytes.data();
}

std::vector<std::byte> rsdp(std::size_t size, std::uint8_t mark) {
    std::vector<std::byte> bytes(size, std::byte{mark});
    return bytes;
}

Multiboot2 grub() {
    Multiboot2 info;
    info.tag(1, Bytes().text("tests=smp.* marker=0").u8(0).data());
    info.tag(2, Bytes().text("GRUB 2.06").u8(0).data());
    info.tag(3, Bytes().u32(0x1000000).u32(0x1800000).text("initrd").u8(0).data());
    info.tag(4, Bytes().u32(639).u32(0xfff).data());
    info.tag(6, memory_map_body());
    info.tag(14, rsdp(20, 14));
    info.tag(15, rsdp(36, 15));
    return info;
}

Result read_multiboot2(const std::vector<std::byte>& bytes) {
    FakeMemory memory;
    memory.place(kStart, bytes);
    return read(read_multiboot2_info, memory, kStart);
}

TEST(Multiboot2Info, ReadsWhatGrubLeaves) {
    const Result result = read_multiboot2(grub().finish());
    ASSERT_TRUE(result.ok) << result.error.view();
    const BootInfo& info = *result.info;
    EXPECT_EQ(info.protocol, Protocol::multiboot2);
    EXPECT_EQ(info.command_line_view(), "tests=smp.* marker=0");
    ASSERT_EQ(info.module_count, 1u);
    EXPECT_EQ(info.modules[0].base, 0x1000000u);
    EXPECT_EQ(info.modules[0].size, 0x800000u);
    EXPECT_EQ(info.rsdp_paddr, 0u);
    EXPECT_EQ(info.rsdp_copy_size, 36u);
    EXPECT_EQ(info.rsdp_copy[0], std::byte{15});
    EXPECT_EQ(info.memory.ranges().size(), 3u);
    EXPECT_TRUE(info.memory.is_usable(0x100000, 0x700000));
}

TEST(Multiboot2Info, TheNewRsdpWinsInEitherOrder) {
    Multiboot2 info;
    info.tag(15, rsdp(36, 15)).tag(14, rsdp(20, 14)).tag(6, memory_map_body());
    EXPECT_EQ(read_multiboot2(info.finish()).info->rsdp_copy[0], std::byte{15});
    Multiboot2 old;
    old.tag(14, rsdp(20, 14)).tag(6, memory_map_body());
    const Result result = read_multiboot2(old.finish());
    EXPECT_EQ(result.info->rsdp_copy_size, 20u);
    EXPECT_EQ(result.info->rsdp_copy[19], std::byte{14});
}

TEST(Multiboot2Info, EntriesMayBeLongerThanWeKnow) {
    Multiboot2 info;
    info.tag(6, memory_map_body(40));
    EXPECT_EQ(read_multiboot2(info.finish()).info->memory.ranges().size(), 3u);
}

TEST(Multiboot2Info, TheEfiMapServesWithoutTheOther) {
    Multiboot2 info;
    info.tag(17, efi_map_body());
    const Result result = read_multiboot2(info.finish());
    ASSERT_TRUE(result.ok) << result.error.view();
    EXPECT_TRUE(result.info->memory.is_usable(0x100000, 0x700000));
    EXPECT_TRUE(result.info->memory.is_usable(0, 0xa0000));
    EXPECT_FALSE(result.info->memory.is_usable(0x808000, 1));
    EXPECT_FALSE(result.info->memory.is_usable(0xffc00000, 1));

    Multiboot2 both; // tag 6 decides
    both.tag(17, efi_map_body()).tag(6, memory_map_body());
    EXPECT_FALSE(read_multiboot2(both.finish()).info->memory.is_usable(0x9fc00, 1));
}

TEST(Multiboot2Info, EveryCutIsAnError) {
    const auto whole = grub().finish();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        // The memory ends there.
        auto cut = whole;
        cut.resize(size);
        EXPECT_FALSE(read_multiboot2(cut).ok) << size;
        // The structure says that it ends there: no end tag.
        if (size >= 8) {
            poke(cut, 0, static_cast<std::uint32_t>(size));
            EXPECT_FALSE(read_multiboot2(cut).ok) << size;
        }
    }
}

TEST(Multiboot2Info, WhatStandsBeforeTheCutIsKept) {
    auto cut = grub().finish();
    cut.resize(cut.size() - 8);
    poke(cut, 0, static_cast<std::uint32_t>(cut.size()));
    const Result result = read_multiboot2(cut);
    EXPECT_EQ(result.error.view(), "multiboot2: no end tag in " + std::to_string(cut.size()) + " bytes");
    EXPECT_EQ(result.info->command_line_view(), "tests=smp.* marker=0");
    EXPECT_FALSE(result.info->memory.empty());
}

TEST(Multiboot2Info, ErrorsNameTheThing) {
    const auto error = [](std::uint32_t type, const std::vector<std::byte>& body) {
        Multiboot2 info;
        info.tag(6, memory_map_body()).tag(type, body);
        return std::string(read_multiboot2(info.finish()).error.view());
    };
    EXPECT_EQ(error(1, Bytes().text("no end").data()), "multiboot2: command line: no end in the 6 bytes of its tag");
    EXPECT_EQ(error(1, {}), "multiboot2: command line: no end in the 0 bytes of its tag");
    EXPECT_EQ(error(1, page_with(std::string(5000, 'x'), 5001)),
              "multiboot2: command line: more than 4095 characters; shorten it");
    EXPECT_EQ(error(3, Bytes().u32(1).data()), "multiboot2: module tag of 4 bytes");
    EXPECT_EQ(error(3, Bytes().u32(0x2000).u32(0x1000).data()), "multiboot2: module from 0x2000 to 0x1000");
    EXPECT_EQ(error(14, rsdp(19, 1)), "multiboot2: RSDP tag of 19 bytes, needs 20");
    EXPECT_EQ(error(15, rsdp(35, 1)), "multiboot2: RSDP tag of 35 bytes, needs 36");
    EXPECT_EQ(error(6, Bytes().u32(0).u32(0).data()), "multiboot2: memory map of 8 bytes with entries of 0");
    EXPECT_EQ(error(6, Bytes().u32(23).u32(0).zeros(46).data()),
              "multiboot2: memory map of 54 bytes with entries of 23");
    EXPECT_EQ(error(6, Bytes().u32(24).u32(0).zeros(30).data()),
              "multiboot2: memory map of 38 bytes with entries of 24");
    EXPECT_EQ(error(18, {}), "multiboot2: the loader has not left EFI boot services");

    Multiboot2 efi;
    efi.tag(17, Bytes().u32(39).u32(1).zeros(39).data());
    EXPECT_EQ(read_multiboot2(efi.finish()).error.view(),
              "multiboot2: EFI memory map of 47 bytes with descriptors of 39");
    EXPECT_EQ(read_multiboot2(Multiboot2().finish()).error.view(), "multiboot2: no memory map (tag 6 or 17)");

    Multiboot2 modules;
    modules.tag(6, memory_map_body());
    for (int i = 0; i < 9; ++i)
        modules.tag(3, Bytes().u32(0x1000).u32(0x2000).u8(0).data());
    EXPECT_EQ(read_multiboot2(modules.finish()).error.view(), "multiboot2: more than 8 modules");

    FakeMemory empty;
    EXPECT_EQ(read(read_multiboot2_info, empty, 0x5000).error.view(),
              "multiboot2: information at 0x5000 is not readable or not 8-aligned");
    empty.place(0x6001, grub().finish());
    EXPECT_EQ(read(read_multiboot2_info, empty, 0x6001).error.view(),
              "multiboot2: information at 0x6001 is not readable or not 8-aligned");
    EXPECT_EQ(read_multiboot2(Bytes().u32(0xffffffff).u32(0).zeros(100).data()).error.view(),
              "multiboot2: information of 4294967295 bytes; from 16 to 1048576 are believed");
}

TEST(Multiboot2Info, BadTagSizesEnd) {
    for (const std::uint32_t size : {0u, 1u, 7u, 0x7fffffffu, 0xfffffff8u, 0xffffffffu}) {
        Multiboot2 info;
        info.tag(6, memory_map_body()).raw(Bytes().u32(99).u32(size).data());
        const Result result = read_multiboot2(info.finish());
        EXPECT_EQ(result.error.view().substr(0, 27), "multiboot2: tag 99 at offse") << size;
    }
}

TEST(BootInfo, SurvivesAnyBytes) {
    std::mt19937 random(23);
    const auto multiboot2 = grub().tag(17, efi_map_body()).finish();
    for (std::uint32_t round = 0; round < 20000; ++round) {
        auto bytes = multiboot2;
        for (unsigned i = 0, n = 1 + random() % 8; i < n; ++i)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        (void)read_multiboot2(bytes);

        auto memory = pvh_memory(round % 2);
        for (const std::uint64_t region : {kStart, kModules, kMap}) {
            auto& target = memory.at(region);
            target[random() % target.size()] = static_cast<std::byte>(random());
        }
        (void)read(read_pvh_info, memory, kStart);
    }
}

} // namespace
} // namespace spinkick::boot
