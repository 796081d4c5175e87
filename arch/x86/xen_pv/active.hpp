// SPDX-License-Identifier: BSD-2-Clause
//
// The one question that the seams of arch/x86 ask.
#pragma once

namespace spinkick::x86::xen_pv {

namespace detail {
inline constinit bool active = false;
} // namespace detail

/// True if this kernel was entered as a Xen PV guest. Set before anything else runs, never changed.
[[nodiscard]] inline bool is_active() noexcept { return detail::active; }

} // namespace spinkick::x86::xen_pv
