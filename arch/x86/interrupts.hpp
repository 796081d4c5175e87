// SPDX-License-Identifier: BSD-2-Clause
//
// The interrupt mask and the sleep that opens it: RFLAGS.IF and HLT on a machine with rings, the event mask and
// SCHEDOP_block in a Xen PV guest. Everything above asks here.
#pragma once

#include "arch/x86/insn.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/xen_pv/active.hpp"

namespace spinkick::x86 {

namespace xen_pv {
bool interrupts_enabled() noexcept;
void mask_interrupts() noexcept;
void unmask_interrupts() noexcept;
void block() noexcept;
} // namespace xen_pv

/// The mask as it was: true if interrupts were on.
struct InterruptState {
    bool enabled = false;
};

[[nodiscard]] inline bool interrupts_enabled() noexcept {
    return xen_pv::is_active() ? xen_pv::interrupts_enabled() : (rflags() & kRflagsIF) != 0;
}

inline void mask_interrupts() noexcept {
    if (xen_pv::is_active())
        xen_pv::mask_interrupts();
    else
        cli();
}

inline void unmask_interrupts() noexcept {
    if (xen_pv::is_active())
        xen_pv::unmask_interrupts();
    else
        sti();
}

/// Opens the mask and sleeps, in one step: an interrupt that came while it was closed ends the sleep.
inline void sleep_until_interrupt() noexcept {
    if (xen_pv::is_active())
        xen_pv::block();
    else
        sti_hlt();
}

[[nodiscard]] inline InterruptState disable_interrupts() noexcept {
    const InterruptState state{interrupts_enabled()};
    mask_interrupts();
    return state;
}

inline void restore_interrupts(InterruptState state) noexcept {
    if (state.enabled)
        unmask_interrupts();
    else
        mask_interrupts();
}

[[nodiscard]] inline bool in_nmi() noexcept { return percpu().nmi_depth != 0; }

} // namespace spinkick::x86
