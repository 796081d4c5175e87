// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/low_memory.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace spinkick::x86::low_memory {
namespace {

using boot::MemoryType;

constexpr std::uint64_t kMiB = 1 << 20;

/// A PC's memory map with an image at 2 MiB.
std::unique_ptr<boot::BootInfo> pc(std::uint64_t base_memory_end = 0x9fc00, std::uint64_t end = 256 * kMiB) {
    auto info = std::make_unique<boot::BootInfo>();
    info->memory.add(0, base_memory_end, MemoryType::usable);
    info->memory.add(base_memory_end, kMiB - base_memory_end, MemoryType::reserved);
    info->memory.add(kMiB, end - kMiB, MemoryType::usable);
    info->memory.clean();
    info->image = {2 * kMiB, 3 * kMiB};
    return info;
}

TEST(TrampolinePage, IsTheHighestWholePageOfBaseMemory) {
    EXPECT_EQ(find_trampoline_page(*pc()), 0x9e000u); // the EBDA begins in the page above
    EXPECT_EQ(find_trampoline_page(*pc(0xa0000)), 0x9f000u);
    EXPECT_EQ(find_trampoline_page(*pc(0x8000)), 0x7000u);
}

TEST(TrampolinePage, IsNeverPage0NorAboveBaseMemory) {
    EXPECT_EQ(find_trampoline_page(*pc(0x1000)), 0u);
    EXPECT_EQ(find_trampoline_page(*pc(0x1fff)), 0u);
    const boot::BootInfo nothing;
    EXPECT_EQ(find_trampoline_page(nothing), 0u);
}

TEST(TrampolinePage, LeavesModulesAlone) {
    auto info = pc(0xa0000);
    info->modules[info->module_count++] = {0x9d800, 0x2400};
    EXPECT_EQ(find_trampoline_page(*info), 0x9c000u);
}

TEST(Arena, ComesAfterImageAndModules) {
    auto info = pc();
    info->modules[info->module_count++] = {5 * kMiB, 16 * kMiB + 1};
    const auto arena = find_arena(*info, 64 * kMiB, kMiB);
    EXPECT_EQ(arena.base, 21 * kMiB + 4096);
    EXPECT_EQ(arena.size, 64 * kMiB);
}

TEST(Arena, IsTheLargestWholeNumberOfUnitsIfNotAllFits) {
    const auto arena = find_arena(*pc(0x9fc00, 16 * kMiB + 512 * 1024), 64 * kMiB, kMiB);
    EXPECT_EQ(arena.base, 5 * kMiB);
    EXPECT_EQ(arena.size, 11 * kMiB);
}

TEST(Arena, EndsWithThingsThatReachToTheEndOfAddresses) {
    auto info = pc();
    info->modules[info->module_count++] = {8 * kMiB, ~std::uint64_t{0} - 8 * kMiB};
    const auto arena = find_arena(*info, 64 * kMiB, kMiB);
    EXPECT_EQ(arena.base, 5 * kMiB);
    EXPECT_EQ(arena.size, 3 * kMiB);
}

} // namespace
} // namespace spinkick::x86::low_memory
