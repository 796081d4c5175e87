// SPDX-License-Identifier: BSD-2-Clause
//
// Which physical memory the kernel takes, of what the loader calls usable: once, at boot.
#pragma once

#include <cstdint>

#include "boot/boot_info.hpp"

namespace spinkick::x86::low_memory {

/// A range of at least `wanted` bytes below 4 GiB, page-aligned, apart from image, modules and the first MiB; if there
/// is none, the largest there is, in whole multiples of `unit`. Size 0 if not even one unit fits.
[[nodiscard]] boot::PhysicalRange find_arena(const boot::BootInfo& info, std::uint64_t wanted,
                                             std::uint64_t unit) noexcept;

/// A usable page below 640 KiB, not page 0 and apart from modules, for the AP start code; 0 if there is none.
[[nodiscard]] std::uint64_t find_trampoline_page(const boot::BootInfo& info) noexcept;

} // namespace spinkick::x86::low_memory
