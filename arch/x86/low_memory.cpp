// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/low_memory.hpp"

#include <algorithm>

namespace spinkick::x86::low_memory {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFirstMiB = 1ull << 20;
constexpr std::uint64_t kReach = 4ull << 30;
constexpr std::uint64_t kConventionalEnd = 0xa0000;

constexpr std::uint64_t up(std::uint64_t address) noexcept { return (address + kPage - 1) & ~(kPage - 1); }

/// End of the free stretch that begins at `begin`: the start of the next thing in the way, or `end`. `begin` itself if
/// something lies on it; then `next` is where that ends.
std::uint64_t free_until(const boot::BootInfo& info, std::uint64_t begin, std::uint64_t end,
                         std::uint64_t& next) noexcept {
    next = end;
    const auto look = [&](const boot::PhysicalRange& thing) {
        if (thing.size == 0 || thing.base >= end || thing.base + thing.size <= begin)
            return;
        if (thing.base <= begin) {
            next = up(thing.base + thing.size);
            end = begin;
        } else {
            end = thing.base;
            next = up(thing.base + thing.size);
        }
    };
    look(info.image);
    for (std::size_t i = 0; i < info.module_count; ++i)
        look(info.modules[i]);
    return end;
}

} // namespace

boot::PhysicalRange find_arena(const boot::BootInfo& info, std::uint64_t wanted, std::uint64_t unit) noexcept {
    boot::PhysicalRange best;
    for (const auto& range : info.memory.ranges()) {
        if (range.type != boot::MemoryType::usable)
            continue;
        auto begin = up(std::max(range.base, kFirstMiB));
        const auto end = std::min(range.end(), kReach) & ~(kPage - 1);
        while (begin < end) {
            std::uint64_t next = end;
            const auto stop = free_until(info, begin, end, next) & ~(kPage - 1);
            const auto size = stop > begin ? stop - begin : 0;
            if (size >= wanted)
                return {begin, wanted};
            if (size / unit * unit > best.size)
                best = {begin, size / unit * unit};
            if (next <= begin)
                break;
            begin = next;
        }
    }
    return best;
}

std::uint64_t find_trampoline_page(const boot::BootInfo& info) noexcept {
    for (auto page = kConventionalEnd - kPage; page != 0; page -= kPage) {
        if (!info.memory.is_usable(page, kPage))
            continue;
        std::uint64_t next = 0;
        if (free_until(info, page, page + kPage, next) == page + kPage)
            return page;
    }
    return 0;
}

} // namespace spinkick::x86::low_memory
