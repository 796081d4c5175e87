// SPDX-License-Identifier: BSD-2-Clause
//
// The CPUs as the MP configuration table lists them (Intel MultiProcessor Specification 1.4, chapter 4): what small
// machines without ACPI have instead of a MADT (QEMU's microvm with acpi=off, Firecracker before 1.8). Input like any
// other: a bad table is an error text and the boot CPU alone.
#pragma once

#include "arch/x86/acpi_tables.hpp"
#include "boot/boot_info.hpp"

namespace spinkick::x86 {

/// Looks for the table where the specification allows it, below 1 MiB, and reads it. False if there is none: `out` has
/// the boot CPU then. After an error it has what was read before.
[[nodiscard]] bool read_mp_table(const boot::PhysicalReader& reader, ApicId boot, MadtCpus& out) noexcept;

} // namespace spinkick::x86
