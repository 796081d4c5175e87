// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paging.hpp"

#include <array>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/cr.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "kernel/log.hpp"

extern "C" const char boot_stack_guard[], image_begin[], text_begin[], text_end[], rodata_begin[], rodata_end[],
    data_begin[], data_end[];
extern "C" {
constinit std::uint64_t kernel_cr3 = 0; ///< for trampoline.S
}

namespace spinkick::x86::paging {
namespace {

constexpr std::uint64_t kPresent = kEntryPresent, kWritable = kEntryWritable;
constexpr std::uint64_t kWriteThrough = 1u << 3,
                        kCacheDisable = 1u << 4; // PAT entry 3: uncached in every PAT of a boot
constexpr std::uint64_t kAddressMask = 0x000ffffffffff000;
constexpr std::uint64_t kBootMapBytes = 4ull << 30;
constexpr std::size_t kPoolPages = 96;

struct alignas(kPageBytes) Table {
    std::array<std::uint64_t, 512> entries{};
};

// Tables live in the image, so that their physical address is a subtraction and no table needs another one to be
// reached.
[[gnu::section(".bss.page_aligned")]] constinit Table root{};
[[gnu::section(".bss.page_aligned")]] constinit std::array<Table, kPoolPages> pool{};
constinit std::size_t pool_used = 0;
constinit std::uint64_t window_next = kPhysicalWindowBase;
constinit bool final_tables = false;
constinit std::uint64_t no_execute = 0;

Table* table_at(std::uint64_t entry) noexcept { return reinterpret_cast<Table*>((entry & kAddressMask) + KERNEL_BASE); }

/// The level 1 entry for an address; builds the levels above it if `create`. nullptr if one is missing or the pool is
/// empty.
std::uint64_t* walk(std::uint64_t address, bool create) noexcept {
    Table* table = &root;
    for (unsigned shift = 39; shift > 12; shift -= 9) {
        auto& entry = table->entries[(address >> shift) & 511];
        if ((entry & kPresent) == 0) {
            if (!create)
                return nullptr;
            if (pool_used == kPoolPages) {
                log("paging: all %zu table pages in use, cannot map 0x%lx", kPoolPages, address);
                return nullptr;
            }
            entry = phys_of_image(&pool[pool_used++]) | kPresent | kWritable;
        }
        table = table_at(entry);
    }
    return &table->entries[(address >> 12) & 511];
}

/// CPUID.0x80000008:EAX[7:0], the bits of a physical address; 36 where there is no such leaf. A page table entry with a
/// higher bit faults on use.
unsigned physical_address_bits() noexcept {
    return max_extended_leaf() >= 0x80000008 ? cpuid(0x80000008).eax & 0xff : 36;
}

void map_image(const char* begin, const char* end, Access access) noexcept {
    for (auto address = reinterpret_cast<std::uint64_t>(begin) & ~(kPageBytes - 1);
         address < reinterpret_cast<std::uint64_t>(end); address += kPageBytes)
        (void)map_page(address, address - KERNEL_BASE, access, Cache::write_back); // the pool is sized for the image
}

} // namespace

bool map_page(std::uint64_t virtual_address, std::uint64_t physical, Access access, Cache cache) noexcept {
    if (xen_pv::is_active()) {
        std::uint64_t permissions = access == Access::read_write ? kWritable : 0;
        if (access != Access::read_execute)
            permissions |= kEntryNoExecute;
        return xen_pv::map_page(virtual_address, physical, permissions);
    }
    auto* entry = walk(virtual_address, true);
    if (entry == nullptr)
        return false;
    std::uint64_t bits = (physical & kAddressMask) | kPresent;
    if (access == Access::read_write)
        bits |= kWritable;
    if (access != Access::read_execute)
        bits |= no_execute;
    if (cache == Cache::uncached)
        bits |= kWriteThrough | kCacheDisable;
    *entry = bits;
    if (final_tables)
        invlpg(virtual_address);
    return true;
}

bool map_again(std::uint64_t virtual_address, std::uint64_t page) noexcept {
    const auto frame = entry_of(page) & kAddressMask;
    if (xen_pv::is_active())
        return xen_pv::map_machine_page(virtual_address, frame, kWritable | kEntryNoExecute);
    return map_page(virtual_address, frame, Access::read_write, Cache::write_back);
}

void flush_page(std::uint64_t virtual_address) noexcept {
    if (xen_pv::is_active())
        xen_pv::flush_page(virtual_address);
    else
        invlpg(virtual_address);
}

void unmap_page(std::uint64_t virtual_address) noexcept {
    if (xen_pv::is_active())
        return xen_pv::unmap_page(virtual_address);
    if (auto* entry = walk(virtual_address, false)) {
        *entry = 0;
        invlpg(virtual_address);
    }
}

std::uint64_t entry_of(std::uint64_t virtual_address) noexcept {
    if (xen_pv::is_active())
        return xen_pv::entry_of(virtual_address);
    const auto* entry = walk(virtual_address, false);
    return entry == nullptr ? 0 : *entry;
}

void init() noexcept {
    if (xen_pv::is_active()) {
        xen_pv::protect_image();
        final_tables = true;
        return;
    }
    no_execute = has_nx() ? kEntryNoExecute : 0;
    map_image(image_begin, text_begin, Access::read_only);
    map_image(text_begin, text_end, Access::read_execute);
    map_image(rodata_begin, rodata_end, Access::read_only);
    map_image(data_begin, data_end, Access::read_write);
    *walk(reinterpret_cast<std::uint64_t>(boot_stack_guard), false) = 0;
    kernel_cr3 = phys_of_image(&root);
    write_cr3(kernel_cr3);
    final_tables = true;
}

bool is_final() noexcept { return final_tables; }

void* map_physical(std::uint64_t physical, std::size_t bytes, Cache cache) noexcept {
    if (!final_tables) {
        if (physical >= kBootMapBytes || bytes > kBootMapBytes - physical)
            return nullptr;
        return reinterpret_cast<void*>(physical);
    }
    // Addresses come from tables that may be wrong; beyond the width of the bus there is only a fault.
    if (!xen_pv::is_active() && (physical + bytes - 1) >> physical_address_bits() != 0) {
        log("paging: no physical memory at 0x%lx: %u bits is the width of an address", physical,
            physical_address_bits());
        return nullptr;
    }
    const auto first = physical & ~(kPageBytes - 1);
    const auto last = (physical + bytes - 1) & ~(kPageBytes - 1);
    const auto pages = (last - first) / kPageBytes + 1;
    if (bytes == 0 || last < first || window_next + pages * kPageBytes < window_next) {
        log("paging: cannot map %zu bytes at physical 0x%lx", bytes, physical);
        return nullptr;
    }
    const auto base = window_next;
    for (std::uint64_t i = 0; i < pages; ++i)
        if (!map_page(base + i * kPageBytes, first + i * kPageBytes, Access::read_write, cache))
            return nullptr;
    window_next += pages * kPageBytes;
    return reinterpret_cast<void*>(base + (physical - first));
}

} // namespace spinkick::x86::paging
