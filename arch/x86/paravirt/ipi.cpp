// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/ipi.hpp"

#include "arch/x86/traps.hpp"

namespace spinkick::paravirt {

void Ipi::on_kick() noexcept {
    auto& slot = slots_[index(this_cpu())];
    slot.kicked = true;
    ++slot.kicks_taken;
}

void Ipi::init() noexcept {
    x86::traps::set_handler(x86::lapic::kVectorKick, [](x86::TrapFrame&) noexcept { on_kick(); });
}

} // namespace spinkick::paravirt
