// SPDX-License-Identifier: BSD-2-Clause
//
// The kernel's own page tables (Intel SDM 3A 4.5): the image by 4 KiB pages, code R-X, constants R--, data RW- without
// execution; a window for physical ranges that are mapped on demand; an arena for stacks and per-CPU blocks with guard
// pages. Nothing else is mapped: there is no identity map, and page 0 faults.
#pragma once

#include <cstddef>
#include <cstdint>

#include "boot/layout.h"

namespace spinkick::x86::paging {

inline constexpr std::size_t kPageBytes = 4096;
/// Virtual windows; the image is below them.
inline constexpr std::uint64_t kArenaBase = 0xffffffffa0000000;
inline constexpr std::uint64_t kAliasBase = 0xffffffffb0000000; ///< second addresses, a page for each CPU
inline constexpr std::uint64_t kPhysicalWindowBase = 0xffffffffc0000000;

enum class Access : std::uint8_t { read_only, read_write, read_execute };
enum class Cache : std::uint8_t { write_back, uncached };

/// Physical address of an object inside the image.
[[nodiscard]] inline std::uint64_t phys_of_image(const void* object) noexcept {
    return reinterpret_cast<std::uint64_t>(object) - KERNEL_BASE;
}

/// Builds the tables and loads CR3. Boot CPU, once; until then the boot tables are in force.
void init() noexcept;
/// True once init() has run: loader data must then be mapped before it is read.
[[nodiscard]] bool is_final() noexcept;

/// Maps [physical, physical + bytes) somewhere in the physical window and returns the virtual address of `physical`;
/// nullptr if the window or the pool of table pages is used up (said on the console). Before init() it answers from the
/// boot tables (low 4 GiB). Mappings stay.
[[nodiscard]] void* map_physical(std::uint64_t physical, std::size_t bytes, Cache cache = Cache::write_back) noexcept;
/// Maps one page at a given virtual address; false if the pool of table pages is used up.
[[nodiscard]] bool map_page(std::uint64_t virtual_address, std::uint64_t physical, Access access, Cache cache) noexcept;
/// Maps the frame behind a page of the arena at another address as well, read-write; false as above.
[[nodiscard]] bool map_again(std::uint64_t virtual_address, std::uint64_t page) noexcept;
/// Takes a page's mapping away (a trap in its place) and flushes it on this CPU.
void unmap_page(std::uint64_t virtual_address) noexcept;
/// This CPU forgets its translation of a page.
void flush_page(std::uint64_t virtual_address) noexcept;

/// The level 1 entry of an address, 0 if not mapped: for tests of W^X and guard pages.
[[nodiscard]] std::uint64_t entry_of(std::uint64_t virtual_address) noexcept;
inline constexpr std::uint64_t kEntryPresent = 1, kEntryWritable = 2, kEntryNoExecute = 1ull << 63;

} // namespace spinkick::x86::paging
