// SPDX-License-Identifier: BSD-2-Clause
//
// An interrupt from one CPU to another, by local APIC or by event channel.
#pragma once

#include "arch/x86/lapic.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"

namespace spinkick::x86::ipi {

/// A fixed interrupt; in a Xen PV guest only the vectors that have a port of their own (call, test).
inline void send(CpuId cpu, std::uint8_t vector) noexcept {
    if (xen_pv::is_active())
        xen_pv::send_vector(cpu, vector);
    else
        lapic::send(percpu_of(cpu).apic_id, lapic::Delivery::fixed, vector);
}

inline void send_nmi(CpuId cpu) noexcept {
    if (xen_pv::is_active())
        xen_pv::send_nmi(cpu);
    else
        lapic::send(percpu_of(cpu).apic_id, lapic::Delivery::nmi, 0);
}

} // namespace spinkick::x86::ipi
