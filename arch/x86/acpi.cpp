// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/acpi.hpp"

#include <algorithm>
#include <cstring>

#include "arch/x86/paging.hpp"
#include "kernel/log.hpp"

namespace spinkick::x86::acpi {
namespace {

constexpr std::uint64_t kBiosArea = 0xe0000;
constexpr std::size_t kBiosAreaBytes = 0x20000;
constexpr std::size_t kRsdpAlignment = 16; // ACPI 6.5, 5.2.5.1

void damage(Tables& out, const ErrorText& error) noexcept {
    log("acpi: %s", error.c_str());
    if (out.damaged++ == 0)
        out.first_damage = error;
}

Bytes map(std::uint64_t address, std::size_t bytes) noexcept {
    const auto* memory = static_cast<const std::byte*>(paging::map_physical(address, bytes));
    return memory == nullptr ? Bytes{} : Bytes{memory, bytes};
}

/// A whole table by its physical address; empty if its length makes no sense or it cannot be mapped.
Bytes map_table(std::uint64_t address, Tables& out) noexcept {
    ErrorText error;
    const auto header = map(address, kTableHeaderBytes);
    if (std::ranges::all_of(header, [](std::byte b) { return b == std::byte{0xff}; })) {
        // A Xen PVH dom0 gets the addresses of host tables that it may not see.
        log("# acpi: no memory behind the table at 0x%llx", static_cast<unsigned long long>(address));
        return {};
    }
    const auto length = table_length(header, error);
    if (!length) {
        damage(out, error);
        return {};
    }
    return map(address, *length);
}

Rsdp find_rsdp(const boot::BootInfo& info) noexcept {
    if (info.rsdp_copy_size != 0)
        return parse_rsdp({info.rsdp_copy.data(), info.rsdp_copy_size});
    if (info.rsdp_paddr != 0)
        return parse_rsdp(map(info.rsdp_paddr, boot::BootInfo::kRsdpBytes));
    const auto area = map(kBiosArea, kBiosAreaBytes);
    for (std::size_t offset = 0; offset + boot::BootInfo::kRsdpBytes <= area.size(); offset += kRsdpAlignment) {
        const auto candidate = area.subspan(offset, boot::BootInfo::kRsdpBytes);
        if (std::memcmp(candidate.data(), "RSD PTR ", 8) != 0)
            continue;
        if (const auto rsdp = parse_rsdp(candidate); rsdp.usable())
            return rsdp;
    }
    return {};
}

void read_table(std::uint64_t address, ApicId boot, Tables& out) noexcept {
    const auto table = map_table(address, out);
    if (table.empty())
        return;
    const auto signature = table_signature(table);
    if (std::string_view(signature.data()) == "APIC" && !out.madt_found) {
        out.madt_found = true;
        parse_madt(table, boot, out.madt);
        if (!out.madt.error.empty())
            damage(out, out.madt.error);
    }
    if (std::string_view(signature.data()) == "FACP") {
        const auto timer = parse_fadt(table);
        out.pm_timer_port = timer.port;
        if (!timer.error.empty())
            damage(out, timer.error);
    }
}

} // namespace

void read(const boot::BootInfo& info, ApicId boot, Tables& out) noexcept {
    out.madt.ids[0] = boot;
    out.madt.count = out.madt.found = 1;
    const auto rsdp = find_rsdp(info);
    if (!rsdp.error.empty())
        damage(out, rsdp.error);
    if (!rsdp.usable()) {
        log("acpi: no RSDP from the loader and none in the BIOS area: the boot CPU runs alone");
        return;
    }
    const auto root_bytes = map_table(rsdp.xsdt != 0 ? rsdp.xsdt : rsdp.rsdt, out);
    ErrorText error;
    const auto root =
        RootTable::parse(root_bytes, rsdp.xsdt != 0 ? RootTable::Kind::xsdt : RootTable::Kind::rsdt, error);
    if (!error.empty())
        damage(out, error);
    if (root.misnamed())
        log("# acpi: the %s has another name, and a right checksum: read all the same",
            rsdp.xsdt != 0 ? "XSDT" : "RSDT");
    for (std::size_t i = 0; i < root.size(); ++i)
        if (root.entry(i) != 0)
            read_table(root.entry(i), boot, out);

    const auto& madt = out.madt;
    if (!out.madt_found)
        log("acpi: no MADT: the boot CPU runs alone");
    if (madt.disabled != 0)
        log("# acpi: %u CPUs not enabled (room for hot-plug)", madt.disabled);
    if (madt.duplicates != 0)
        log("acpi: %u CPUs listed twice in the MADT", madt.duplicates);
    if (madt.over_limit != 0)
        log("smp: found %u CPUs, using %u", madt.found, madt.count);
    if (out.madt_found && !madt.boot_cpu_listed)
        log("acpi: the MADT does not list the boot CPU (APIC id %u)", raw(boot));
}

} // namespace spinkick::x86::acpi
