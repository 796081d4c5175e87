// SPDX-License-Identifier: BSD-2-Clause
//
// hvm_start_info, the structure that EBX points to after a PVH entry (xen/include/public/arch-x86/hvm/start_info.h).
// Version 0 has no memory map: a Xen PVH dom0 asks Xen for it.
#pragma once

#include "boot/boot_info.hpp"

namespace spinkick::boot {

/// Reads it into `out`. False: `error` says what is wrong; what was read before stays in `out`.
[[nodiscard]] bool read_pvh_info(std::uint64_t address, const PhysicalReader& reader, BootInfo& out,
                                 ErrorText& error) noexcept;
/// The flags of a start info, before the rest of it is read: they decide where the first line goes. 0 if there is no
/// start info at the address.
[[nodiscard]] std::uint32_t read_pvh_flags(std::uint64_t address, const PhysicalReader& reader) noexcept;

} // namespace spinkick::boot
