// SPDX-License-Identifier: BSD-2-Clause
#include "boot/memory_map.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace spinkick::boot {
namespace {

struct Entry {
    std::uint64_t base, size;
    MemoryType type;
};

std::string text(const MemoryMap& map) {
    std::string all;
    for (const MemoryRange& range : map.ranges())
        all += (all.empty() ? "" : " ") + std::to_string(range.base) + "-" + std::to_string(range.end()) + ":" +
               std::to_string(static_cast<int>(range.type));
    return all;
}

std::unique_ptr<MemoryMap> cleaned(const std::vector<Entry>& entries) {
    auto map = std::make_unique<MemoryMap>();
    for (const auto& entry : entries)
        map->add(entry.base, entry.size, entry.type);
    map->clean();
    return map;
}

constexpr auto kUsable = MemoryType::usable;
constexpr auto kAcpi = MemoryType::acpi_tables;
constexpr auto kReserved = MemoryType::reserved;

TEST(MemoryMap, SortsAndJoins) {
    EXPECT_EQ(text(*cleaned({{200, 100, kUsable}, {0, 100, kUsable}, {100, 100, kUsable}})), "0-300:0");
    EXPECT_EQ(text(*cleaned({{200, 100, kReserved}, {0, 100, kUsable}})), "0-100:0 200-300:4");
    EXPECT_EQ(text(*cleaned({})), "");
}

TEST(MemoryMap, TheMoreSevereTypeWinsAnOverlap) {
    EXPECT_EQ(text(*cleaned({{0, 300, kUsable}, {100, 100, kReserved}})), "0-100:0 100-200:4 200-300:0");
    EXPECT_EQ(text(*cleaned({{100, 100, kReserved}, {0, 300, kUsable}})), "0-100:0 100-200:4 200-300:0");
    EXPECT_EQ(text(*cleaned({{0, 200, kUsable}, {100, 200, kAcpi}, {150, 10, kReserved}})),
              "0-100:0 100-150:1 150-160:4 160-300:1");
    EXPECT_EQ(text(*cleaned({{0, 200, kUsable}, {100, 200, kUsable}})), "0-300:0");
    EXPECT_EQ(text(*cleaned({{0, 100, kUsable}, {0, 100, kReserved}})), "0-100:4");
}

TEST(MemoryMap, EmptyAndWrappingEntries) {
    EXPECT_EQ(text(*cleaned({{0, 0, kUsable}, {5, 0, kReserved}})), "");
    const auto map = cleaned({{~0ull - 9, 100, kReserved}, {~0ull, 100, kUsable}});
    ASSERT_EQ(map->ranges().size(), 1u);
    EXPECT_EQ(map->ranges()[0].end(), ~0ull);
}

TEST(MemoryMap, IsUsableOnlyInside) {
    const auto map = cleaned({{0, 300, kUsable}, {100, 100, kReserved}});
    EXPECT_TRUE(map->is_usable(0, 100));
    EXPECT_FALSE(map->is_usable(0, 101));
    EXPECT_FALSE(map->is_usable(150, 10));
    EXPECT_TRUE(map->is_usable(200, 100));
    EXPECT_FALSE(map->is_usable(200, ~0ull));
    EXPECT_FALSE(map->is_usable(300, 0));
    EXPECT_EQ(map->usable_bytes(), 200u);
}

/// Against a table of bytes, and with far more entries than fit: what is reserved anywhere never comes out as usable.
TEST(MemoryMap, AgreesWithATableOfBytes) {
    constexpr std::size_t kSpace = 4096;
    std::mt19937 random(17);
    for (int round = 0; round < 400; ++round) {
        std::vector<int> truth(kSpace, -1);
        auto map = std::make_unique<MemoryMap>();
        const std::size_t count = 1 + random() % 300;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t base = random() % kSpace;
            const std::uint64_t size = random() % std::min<std::size_t>(kSpace - base, 60);
            const auto type = random() % 2 == 0 ? kUsable : static_cast<MemoryType>(random() % 6);
            map->add(base, size, type);
            for (std::uint64_t at = base; at < base + size; ++at)
                truth[at] = std::max(truth[at], static_cast<int>(type));
        }
        map->clean();
        ASSERT_LE(map->ranges().size(), MemoryMap::kMostRanges);
        std::vector<int> seen(kSpace, -1);
        std::uint64_t last = 0;
        for (const MemoryRange& range : map->ranges()) {
            ASSERT_GE(range.base, last); // sorted, disjoint
            last = range.end();
            ASSERT_LE(last, kSpace);
            for (std::uint64_t at = range.base; at < range.end(); ++at)
                seen[at] = static_cast<int>(range.type);
        }
        for (std::size_t at = 0; at < kSpace; ++at) {
            if (seen[at] == 0) {
                ASSERT_EQ(truth[at], 0) << at;
            }
            if (map->given_up() == 0) {
                ASSERT_EQ(seen[at], truth[at]) << at;
            }
        }
    }
}

TEST(MemoryMap, NothingIsUsableAfterARestrictionWasLost) {
    auto map = std::make_unique<MemoryMap>();
    for (std::uint64_t i = 0; i < MemoryMap::kMostRanges + 1; ++i)
        map->add(i * 10, 5, kReserved);
    map->add(0, 10000, kUsable);
    map->add(0, 1000, kReserved); // no more room for this one either, so none is made
    map->add(0, 10000, kUsable);
    map->clean();
    EXPECT_EQ(map->usable_bytes(), 0u);
    EXPECT_EQ(map->given_up(), 2u);
}

TEST(MemoryMap, AFullMapGivesUpTheSmallestUsableRange) {
    auto map = std::make_unique<MemoryMap>();
    for (std::uint64_t i = 0; i < MemoryMap::kMostRanges; ++i)
        map->add(i * 100, i == 50 ? 5 : 10, kUsable);
    map->add(50'000, 7, kReserved);
    map->clean();
    EXPECT_EQ(map->ranges().size(), MemoryMap::kMostRanges);
    EXPECT_EQ(map->given_up(), 1u);
    EXPECT_FALSE(map->is_usable(5000, 1));
    EXPECT_EQ(map->ranges().back().type, kReserved);
}

TEST(MemoryMap, E820Types) {
    EXPECT_EQ(memory_type_of_e820(1), MemoryType::usable);
    EXPECT_EQ(memory_type_of_e820(3), MemoryType::acpi_tables);
    EXPECT_EQ(memory_type_of_e820(4), MemoryType::acpi_nvs);
    EXPECT_EQ(memory_type_of_e820(5), MemoryType::unusable);
    for (const std::uint32_t type : {0u, 2u, 6u, 8u, 0xffffffffu})
        EXPECT_EQ(memory_type_of_e820(type), MemoryType::reserved);
}

} // namespace
} // namespace spinkick::boot
