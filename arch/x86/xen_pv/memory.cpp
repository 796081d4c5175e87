// SPDX-License-Identifier: BSD-2-Clause
//
// Page tables of a PV guest. Entries hold machine frames; a page that is in use as a table is mapped read-only
// everywhere, and only Xen writes it, after a look at each entry. The tables that Xen built at the start stay; what the
// windows of paging.hpp need is added below them.
#include <array>
#include <cstring>

#include "arch/x86/cr.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/xen_error.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "arch/x86/xen_pv/xen_pv_abi.hpp"
#include "boot/layout.h"
#include "kernel/log.hpp"

extern "C" const char boot_stack_guard[], image_begin[], text_begin[], text_end[], rodata_begin[], rodata_end[],
    data_begin[], data_end[];

namespace spinkick::x86::xen_pv {
namespace {

using paravirt::xen_hypercall;
using paravirt::xen_abi::Hypercall;

constexpr std::uint64_t kPage = paging::kPageBytes;
constexpr std::uint64_t kAddressMask = 0x000ffffffffff000;
constexpr std::uint64_t kTableBits = 0x67; // present, writable, user (all of a PV guest is ring 3), accessed, dirty
constexpr std::uint64_t kPageBits = 0x65;  // the same without writable, which is a page's own matter
constexpr std::size_t kPoolPages = 40;

struct alignas(kPage) Table {
    std::array<std::uint64_t, 512> entries{};
};
[[gnu::section(".bss.page_aligned")]] constinit std::array<Table, kPoolPages> pool{};
constinit std::size_t pool_used = 0;

constinit const abi::start_info* start = nullptr;
constinit std::uint64_t root_machine = 0; ///< reading CR3 is a trap here

const std::uint64_t* frames() noexcept { return reinterpret_cast<const std::uint64_t*>(start->mfn_list); }

std::uint64_t machine_of(std::uint64_t physical) noexcept {
    return frames()[physical / kPage] * kPage + physical % kPage;
}

/// A table as this guest sees it: Xen maps the whole initial region at KERNEL_BASE, and the pool is in it.
const std::uint64_t* table_at(std::uint64_t entry) noexcept {
    const auto* to_physical = reinterpret_cast<const std::uint64_t*>(abi::kMachineToPhysical);
    return reinterpret_cast<const std::uint64_t*>(KERNEL_BASE + to_physical[(entry & kAddressMask) / kPage] * kPage);
}

bool write_entry(std::uint64_t machine_address, std::uint64_t value) noexcept {
    const abi::mmu_update update{machine_address, value};
    std::uint32_t done = 0;
    const auto result = xen_hypercall(Hypercall::mmu_update, reinterpret_cast<std::uint64_t>(&update), 1,
                                      reinterpret_cast<std::uint64_t>(&done), paravirt::xen_abi::DOMID_SELF);
    if (!result.ok())
        log("xen: mmu_update of 0x%lx with 0x%lx gives %s", machine_address, value,
            paravirt::xen_error_text(result).c_str());
    return result.ok();
}

bool set_page(std::uint64_t virtual_address, std::uint64_t value, std::uint64_t flush = abi::UVMF_INVLPG_ALL) noexcept {
    const auto result = xen_hypercall(Hypercall::update_va_mapping, virtual_address, value, flush);
    if (!result.ok())
        log("xen: update_va_mapping of 0x%lx with 0x%lx gives %s", virtual_address, value,
            paravirt::xen_error_text(result).c_str());
    return result.ok();
}

/// The level 1 table that maps an address; missing levels are added if `create`.
const std::uint64_t* level1_of(std::uint64_t address, bool create) noexcept {
    std::uint64_t machine = root_machine;
    const auto* table = table_at(machine);
    for (unsigned shift = 39; shift > 12; shift -= 9) {
        const auto slot = (address >> shift) & 511;
        auto entry = table[slot];
        if ((entry & paging::kEntryPresent) == 0) {
            if (!create)
                return nullptr;
            if (pool_used == kPoolPages) {
                log("paging: all %zu table pages in use, cannot map 0x%lx", kPoolPages, address);
                return nullptr;
            }
            const auto* fresh = &pool[pool_used++];
            const auto fresh_machine = machine_of_image(fresh);
            // Read-only first: Xen takes no page as a table that can be written past it.
            if (!set_page(reinterpret_cast<std::uint64_t>(fresh), fresh_machine | kPageBits | paging::kEntryNoExecute))
                return nullptr;
            entry = fresh_machine | kTableBits;
            if (!write_entry(machine + slot * 8, entry))
                return nullptr;
        }
        machine = entry & kAddressMask;
        table = table_at(machine);
    }
    return table;
}

void protect(const char* begin, const char* end, std::uint64_t permissions) noexcept {
    for (auto address = reinterpret_cast<std::uint64_t>(begin) & ~(kPage - 1);
         address < reinterpret_cast<std::uint64_t>(end); address += kPage)
        (void)set_page(address, machine_of(address - KERNEL_BASE) | kPageBits | permissions);
}

} // namespace

std::uint64_t machine_of_image(const void* object) noexcept { return machine_of(paging::phys_of_image(object)); }
std::uint64_t kernel_root_machine() noexcept { return root_machine; }

void read_start_info(std::uint64_t start_info, boot::BootInfo& info) noexcept {
    start = reinterpret_cast<const abi::start_info*>(start_info);
    root_machine = read_cr3() & kAddressMask;
    info.protocol = boot::Protocol::xen_pv;
    // In order: kernel, initrd, frame list, start_info, page tables, one page of stack; then free memory.
    const auto first_free = start->pt_base - KERNEL_BASE + (start->nr_pt_frames + 1) * kPage;
    info.memory.add(first_free, start->nr_pages * kPage - first_free, boot::MemoryType::usable);
    info.memory.clean();
    std::size_t size = 0;
    while (size < sizeof start->cmd_line && start->cmd_line[size] != '\0')
        ++size;
    std::memcpy(info.command_line, start->cmd_line, size);
    info.command_line[size] = '\0';
    info.command_line_size = size;
}

bool is_initial_domain(std::uint64_t start_info) noexcept {
    return (reinterpret_cast<const abi::start_info*>(start_info)->flags & paravirt::xen_abi::SIF_INITDOMAIN) != 0;
}

ConsolePlace console_place(std::uint64_t start_info) noexcept {
    const auto& info = *reinterpret_cast<const abi::start_info*>(start_info);
    ConsolePlace place;
    place.port = info.console_evtchn;
    const auto machine_frame = info.console_mfn;
    if (machine_frame == 0 || machine_frame >= abi::kMachineToPhysicalEntries) {
        place.lack.set("the start info's console_mfn is 0x%lx", machine_frame);
    } else if (place.port == 0 || place.port >= paravirt::xen_abi::kPorts) {
        place.lack.set("the start info's console_evtchn is %u", place.port);
    } else {
        // It lies below the page tables in the region that the domain builder has mapped.
        const auto physical = reinterpret_cast<const std::uint64_t*>(abi::kMachineToPhysical)[machine_frame] * kPage;
        if (physical >= info.pt_base - KERNEL_BASE)
            place.lack.set("its page 0x%lx (machine frame 0x%lx) is not in the first mapping", physical, machine_frame);
        else
            place.page = reinterpret_cast<void*>(KERNEL_BASE + physical);
    }
    return place;
}

void protect_image() noexcept {
    protect(image_begin, text_begin, paging::kEntryNoExecute);
    protect(text_begin, text_end, 0);
    protect(rodata_begin, rodata_end, paging::kEntryNoExecute);
    for (auto address = reinterpret_cast<std::uint64_t>(data_begin);
         address < reinterpret_cast<std::uint64_t>(data_end); address += kPage) {
        if (address == reinterpret_cast<std::uint64_t>(shared_info()))
            continue; // another frame is there already
        if (address == reinterpret_cast<std::uint64_t>(boot_stack_guard)) {
            (void)set_page(address, 0);
            continue;
        }
        (void)set_page(address, machine_of(address - KERNEL_BASE) | kPageBits | paging::kEntryWritable |
                                    paging::kEntryNoExecute);
    }
}

bool map_machine_page(std::uint64_t virtual_address, std::uint64_t machine, std::uint64_t permissions) noexcept {
    // The image's own pages have their tables from the start, also before read_start_info().
    if (start != nullptr && level1_of(virtual_address, true) == nullptr)
        return false;
    return set_page(virtual_address, (machine & kAddressMask) | kPageBits | permissions);
}

bool map_page(std::uint64_t virtual_address, std::uint64_t physical, std::uint64_t permissions) noexcept {
    return map_machine_page(virtual_address, machine_of(physical & kAddressMask), permissions);
}

void unmap_page(std::uint64_t virtual_address) noexcept { (void)set_page(virtual_address, 0, abi::UVMF_INVLPG_LOCAL); }

void flush_page(std::uint64_t virtual_address) noexcept {
    abi::mmuext_op operation{};
    operation.cmd = abi::MMUEXT_INVLPG_LOCAL;
    operation.arg1 = virtual_address;
    const auto result =
        xen_hypercall(Hypercall::mmuext_op, reinterpret_cast<std::uint64_t>(&operation), 1, 0, // nobody counts
                      paravirt::xen_abi::DOMID_SELF);
    if (!result.ok())
        log("xen: MMUEXT_INVLPG_LOCAL of 0x%lx gives %s", virtual_address, paravirt::xen_error_text(result).c_str());
}

std::uint64_t entry_of(std::uint64_t virtual_address) noexcept {
    const auto* table = level1_of(virtual_address, false);
    return table == nullptr ? 0 : table[(virtual_address >> 12) & 511];
}

} // namespace spinkick::x86::xen_pv
