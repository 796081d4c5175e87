// SPDX-License-Identifier: BSD-2-Clause
//
// The Multiboot2 boot information (Multiboot2 Specification 2.0, section 3.6): a length and a row of tags, 8-aligned.
// GRUB may leave it right behind the image or in low memory, so it is copied before any memory is used.
#pragma once

#include "boot/boot_info.hpp"

namespace spinkick::boot {

/// Reads it into `out`. False: `error` says what is wrong; what was read before stays in `out`.
[[nodiscard]] bool read_multiboot2_info(std::uint64_t address, const PhysicalReader& reader, BootInfo& out,
                                        ErrorText& error) noexcept;

} // namespace spinkick::boot
