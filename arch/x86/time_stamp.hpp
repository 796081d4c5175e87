// SPDX-License-Identifier: BSD-2-Clause
//
// The counter that this kernel tells time by, in TSC ticks: the TSC itself, except where Xen emulates that for an HVM
// or PVH guest. There a vCPU's TSC stands still while it is preempted (Xen's timer mode 0, "delay for missed ticks"; it
// cannot be changed from inside), so the counters of the vCPUs drift apart, by half a second within seconds of
// contention. What stays right is Xen's pvclock page, which is written anew each time the vCPU runs again.
#pragma once

#include "arch/x86/insn.hpp"

namespace spinkick::x86 {

namespace detail {
inline constinit bool follows_xen_time = false;
[[nodiscard]] Tsc xen_time_stamp() noexcept;
} // namespace detail

[[nodiscard]] inline Tsc time_stamp() noexcept { return detail::follows_xen_time ? detail::xen_time_stamp() : rdtsc(); }

/// Ordered against the loads and stores around it.
[[nodiscard]] inline Tsc time_stamp_ordered() noexcept {
    // An RDTSC that Xen emulates is an exit, and those order everything.
    return detail::follows_xen_time ? detail::xen_time_stamp() : rdtsc_ordered();
}

/// Goes over to Xen's time if the TSC is emulated. The boot CPU, once, when its pvclock page is registered and the
/// frequency is known, and before any other CPU runs.
void choose_time_stamp() noexcept;

} // namespace spinkick::x86
