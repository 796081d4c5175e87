// SPDX-License-Identifier: BSD-2-Clause
//
// The machine's tables, found and mapped: what acpi_tables.hpp parses. A table that is missing, damaged or cut is a
// line on the console and a fallback (the MP table, the boot CPU alone, no PM timer), never a fault.
#pragma once

#include <cstdint>

#include "arch/x86/acpi_tables.hpp"
#include "boot/boot_info.hpp"

namespace spinkick::x86::acpi {

/// What the kernel took from the tables.
struct Tables {
    MadtCpus madt{};
    bool madt_found = false;
    bool fadt_found = false;
    bool mp_table_found = false;     ///< read only where there is no MADT
    std::uint16_t pm_timer_port = 0; ///< 0: none
    std::uint32_t damaged = 0;       ///< tables that were there and not whole: boot.tables reports an error then
    ErrorText first_damage;
};

/// Reads them by way of `info`: the copy of the RSDP, its address, or a search of the BIOS area. `boot` is the boot
/// CPU's own id, which becomes CPU 0 whatever the tables say.
void read(const boot::BootInfo& info, ApicId boot, Tables& out) noexcept;

} // namespace spinkick::x86::acpi
