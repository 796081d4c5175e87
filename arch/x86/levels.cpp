// SPDX-License-Identifier: BSD-2-Clause
//
// The IRET of a debug trap lets NMIs in again, although the handler of one still runs (Intel SDM 3A 6.7.1). That is
// welcome here, since a rescue must get through; but the next NMI would begin at the top of the same stack. So the
// handler of the level moves the place where NMIs begin to the lower half of their stack, and back. The debug trap
// itself has no stack of its own: it pushes below whatever runs.
#include "arch/x86/levels.hpp"

#include <array>
#include <atomic>

#include "arch/x86/descriptors.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/ipi.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/traps.hpp"
#include "kernel/machine.hpp"

namespace spinkick::x86::levels {
namespace {

constexpr std::uint8_t kVectorDebug = 1;

constinit machine::LevelHandlers handlers{};
/// CPUs that were sent an NMI for this level. An NMI says nothing about its sender.
constinit std::array<std::atomic<bool>, kMaxCpus> nmi_wanted{};
/// Where NMIs of a CPU begin usually, while that is moved; else 0. Each CPU touches its own.
constinit std::array<std::uint64_t, kMaxCpus> usual_nmi_stack{};

void move_nmi_stack() noexcept {
    if (xen_pv::is_active()) // traps push onto the current stack
        return;
    const auto cpu = this_cpu();
    const auto top = descriptors::nmi_stack(cpu);
    usual_nmi_stack[index(cpu)] = top;
    descriptors::set_nmi_stack(cpu, top - paging::kPageBytes);
}

void move_nmi_stack_back() noexcept {
    const auto cpu = this_cpu();
    auto& usual = usual_nmi_stack[index(cpu)];
    if (usual == 0)
        return;
    descriptors::set_nmi_stack(cpu, usual);
    usual = 0;
}

void on_interrupt(TrapFrame&) noexcept {
    unmask_interrupts(); // a higher one may come
    handlers.interrupt();
    mask_interrupts();
}

void on_debug_trap(TrapFrame& frame) noexcept {
    if ((frame.rflags & kRflagsTF) == 0)
        die_with_frame(frame, "#DB debug, and no single step");
    if (handlers.debug_trap())
        frame.rflags &= ~kRflagsTF;
}

} // namespace

void on_nmi() noexcept {
    // acquire: pairs with interrupt_at(). Who is to be thrown out does not begin anything.
    if (!nmi_wanted[index(this_cpu())].exchange(false, std::memory_order_acquire) ||
        percpu().rescue.load(std::memory_order_relaxed))
        return;
    move_nmi_stack();
    if (handlers.debug_trap != nullptr)
        set_trap_flag();
    handlers.nmi();
    clear_trap_flag();
    move_nmi_stack_back();
}

void leave_all() noexcept {
    nmi_wanted[index(this_cpu())].store(false, std::memory_order_relaxed); // a flag on its own
    move_nmi_stack_back();
}

} // namespace spinkick::x86::levels

namespace spinkick::machine {

using namespace x86;

void set_level_handlers(const LevelHandlers& handlers) noexcept {
    levels::handlers = handlers;
    traps::set_handler(lapic::kVectorTestLow, levels::on_interrupt);
    traps::set_handler(lapic::kVectorTestHigh, [](TrapFrame&) noexcept { levels::handlers.higher_interrupt(); });
    traps::set_handler(levels::kVectorDebug, levels::on_debug_trap);
}

void interrupt_at(CpuId cpu, Level level) noexcept {
    switch (level) {
    case Level::interrupt:
        return ipi::send(cpu, lapic::kVectorTestLow);
    case Level::higher_interrupt:
        return ipi::send(cpu, lapic::kVectorTestHigh);
    case Level::nmi:
        levels::nmi_wanted[index(cpu)].store(true, std::memory_order_release); // before the NMI that makes it look
        return ipi::send_nmi(cpu);
    }
}

} // namespace spinkick::machine
