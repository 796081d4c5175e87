// SPDX-License-Identifier: BSD-2-Clause
//
// The console of a Xen domU: finds the ring that the toolstack has made, for PVH and HVM by parameters, for PV in the
// start info, and gives it to the console. A domU may not write to Xen's own console.
#pragma once

#include <cstdint>

#include "kernel/text.hpp"

namespace spinkick::x86::xen_console {

/// Why there is no ring; empty if there is one.
using Lack = FixedText<120>;

/// Uses the ring from now on, if there is one. `pv_start_info` is looked at in a PV guest only.
[[nodiscard]] Lack use_ring(std::uint64_t pv_start_info) noexcept;

/// Around the change from the boot tables to the final ones, which need a mapping of their own: in between, bytes for
/// the ring are lost, and counted.
void before_final_tables() noexcept;
void after_final_tables() noexcept;

} // namespace spinkick::x86::xen_console
