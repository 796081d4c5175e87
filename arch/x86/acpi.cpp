// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/acpi.hpp"

#include <algorithm>
#include <cstring>

#include "arch/x86/mp_table.hpp"
#include "arch/x86/paging.hpp"
#include "kernel/log.hpp"

namespace spinkick::x86::acpi {
namespace {

constexpr std::uint64_t kBiosArea = 0xe0000;
constexpr std::size_t kBiosAreaBytes = 0x20000;
constexpr std::size_t kRsdpAlignment = 16; // ACPI 6.5, 5.2.5.1
/// No machine has half as many. A longer list is damaged, and each entry would cost a mapping that stays.
constexpr std::size_t kMostTables = 64;
/// A line on a serial port may take 20 ms; what is wrong is clear from the first ones.
constexpr std::uint32_t kMostLines = 8;

void damage(Tables& out, const ErrorText& error) noexcept {
    if (out.damaged < kMostLines)
        log("acpi: %s", error.c_str());
    if (out.damaged++ == 0)
        out.first_damage = error;
}

bool is_table(Bytes header, std::string_view name) noexcept {
    return std::string_view(table_signature(header).data(), 4) == name;
}

Bytes map(std::uint64_t address, std::size_t bytes) noexcept {
    const auto* memory = static_cast<const std::byte*>(paging::map_physical(address, bytes));
    return memory == nullptr ? Bytes{} : Bytes{memory, bytes};
}

/// Where there is no memory a bus reads as ones. A Xen PVH dom0 gets the addresses of host tables that it may not see.
bool is_nowhere(Bytes header) noexcept {
    return std::ranges::all_of(header, [](std::byte b) { return b == std::byte{0xff}; });
}

/// A whole table by its physical address; empty, with the damage noted, if its length makes no sense or it cannot be
/// mapped.
Bytes map_table(std::uint64_t address, Tables& out) noexcept {
    ErrorText error;
    const auto header = map(address, kTableHeaderBytes);
    const auto length = header.empty() || is_nowhere(header) ? std::nullopt : table_length(header, error);
    const auto table = length ? map(address, *length) : Bytes{};
    if (table.empty()) {
        if (error.empty())
            error.set("no memory behind the table at 0x%llx", static_cast<unsigned long long>(address));
        damage(out, error);
    }
    return table;
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

/// Only what is needed is mapped whole. `nowhere` counts the tables that are not there.
void read_table(std::uint64_t address, ApicId boot, Tables& out, std::uint32_t& nowhere) noexcept {
    const auto header = map(address, kTableHeaderBytes);
    if (header.empty() || is_nowhere(header)) {
        if (nowhere++ == 0)
            log("# acpi: no memory behind the table at 0x%llx", static_cast<unsigned long long>(address));
        return;
    }
    ErrorText error;
    if (!table_length(header, error)) {
        damage(out, error);
        return;
    }
    if (is_table(header, "APIC") && !out.madt_found) {
        out.madt_found = true;
        if (const auto table = map_table(address, out); !table.empty()) {
            parse_madt(table, boot, out.madt);
            if (!out.madt.error.empty())
                damage(out, out.madt.error);
        }
    }
    if (is_table(header, "FACP") && !out.fadt_found) {
        out.fadt_found = true;
        if (const auto table = map_table(address, out); !table.empty()) {
            const auto timer = parse_fadt(table);
            out.pm_timer_port = timer.port;
            if (!timer.error.empty())
                damage(out, timer.error);
        }
    }
}

/// The tables behind the root table, as far as they can be believed.
void read_root(const Rsdp& rsdp, ApicId boot, Tables& out) noexcept {
    const bool wide = rsdp.xsdt != 0;
    const auto root_bytes = map_table(wide ? rsdp.xsdt : rsdp.rsdt, out);
    if (root_bytes.empty())
        return;
    ErrorText error;
    const auto root = RootTable::parse(root_bytes, wide ? RootTable::Kind::xsdt : RootTable::Kind::rsdt, error);
    if (!error.empty())
        damage(out, error);
    if (root.misnamed())
        log("# acpi: the %s has another name, and a right checksum: read all the same", wide ? "XSDT" : "RSDT");
    if (root.size() > kMostTables) {
        error.set("the %s lists %zu tables: the first %zu are read", wide ? "XSDT" : "RSDT", root.size(), kMostTables);
        damage(out, error);
    }
    std::uint32_t nowhere = 0;
    for (std::size_t i = 0; i < std::min(root.size(), kMostTables); ++i)
        if (root.entry(i) != 0)
            read_table(root.entry(i), boot, out, nowhere);
    if (nowhere > 1)
        log("# acpi: nor behind %u more tables", nowhere - 1);
    if (out.damaged > kMostLines)
        log("acpi: and %u more tables are damaged", out.damaged - kMostLines);
}

void read_mp(ApicId boot, Tables& out) noexcept {
    const boot::PhysicalReader reader{[](void*, std::uint64_t address, std::size_t size) noexcept {
                                          const auto bytes = map(address, size);
                                          return bytes.empty() ? std::nullopt : std::optional{bytes};
                                      },
                                      nullptr};
    out.mp_table_found = read_mp_table(reader, boot, out.madt);
    if (!out.madt.error.empty())
        damage(out, out.madt.error);
    if (out.mp_table_found)
        log("acpi: no MADT: %u CPUs by the MP table", out.madt.count);
    else
        log("acpi: no MADT and no MP table: the boot CPU runs alone");
}

} // namespace

void read(const boot::BootInfo& info, ApicId boot, Tables& out) noexcept {
    out.madt.ids[0] = boot;
    out.madt.count = out.madt.found = 1;
    const auto rsdp = find_rsdp(info);
    if (!rsdp.error.empty())
        damage(out, rsdp.error);
    if (rsdp.usable())
        read_root(rsdp, boot, out);
    else
        log("acpi: no RSDP from the loader and none in the BIOS area");
    if (!out.madt_found)
        read_mp(boot, out);

    const auto& madt = out.madt;
    if (madt.disabled != 0)
        log("# acpi: %u CPUs not enabled (room for hot-plug)", madt.disabled);
    if (madt.duplicates != 0)
        log("acpi: %u CPUs listed twice", madt.duplicates);
    if (madt.over_limit != 0)
        log("smp: found %u CPUs, using %u", madt.found, madt.count);
    if ((out.madt_found || out.mp_table_found) && !madt.boot_cpu_listed)
        log("acpi: the %s does not list the boot CPU (APIC id %u)", out.madt_found ? "MADT" : "MP table", raw(boot));
}

} // namespace spinkick::x86::acpi
