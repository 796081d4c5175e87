// SPDX-License-Identifier: BSD-2-Clause
//
// The interrupt mask, as kernel/ sees it. On this side of the seam it is RFLAGS.IF; a Xen PV guest has an event mask
// instead.
#pragma once

#include "arch/x86/insn.hpp"
#include "arch/x86/percpu.hpp"

namespace spinkick::x86 {

/// The mask as it was: true if interrupts were on.
struct InterruptState {
    bool enabled = false;
};

[[nodiscard]] inline bool interrupts_enabled() noexcept { return (rflags() & kRflagsIF) != 0; }

[[nodiscard]] inline InterruptState disable_interrupts() noexcept {
    const InterruptState state{interrupts_enabled()};
    cli();
    return state;
}

inline void restore_interrupts(InterruptState state) noexcept {
    if (state.enabled)
        sti();
    else
        cli();
}

[[nodiscard]] inline bool in_nmi() noexcept { return percpu().nmi_depth != 0; }

} // namespace spinkick::x86
