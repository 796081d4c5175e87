// SPDX-License-Identifier: BSD-2-Clause
//
// Which of Xen's guests this is: dom0, which owns the machine and Xen's console, or a domU, which has a console ring
// and whose end is an end of its own only.
#pragma once

#include <cstdint>

#include "kernel/text.hpp"

namespace spinkick::paravirt::xen_domain {

/// What the loader or CPUID said; before the first line and before anything can go wrong.
void set_initial(bool initial) noexcept;
[[nodiscard]] bool is_initial() noexcept;

/// The domain's number by its CPUID leaf; false if the leaf has none (a PV guest).
[[nodiscard]] bool read_own_id(std::uint32_t& id) noexcept;

/// Where Xen's toolstack has put the console ring of an HVM or PVH guest.
struct ConsolePlace {
    std::uint64_t frame = 0; ///< guest frame number
    std::uint32_t port = 0;
    FixedText<120> lack; ///< why there is none; empty if there is one
};
[[nodiscard]] ConsolePlace ask_console_place() noexcept;

} // namespace spinkick::paravirt::xen_domain
