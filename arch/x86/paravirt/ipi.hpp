// SPDX-License-Identifier: BSD-2-Clause
//
// Sleep and kick without a hypervisor: HLT, ended by a fixed IPI. Works on bare metal and under plain emulation, and is
// the control for the paravirtual back ends.
//
// A wait whose caller has interrupts masked must not let a device or timer interrupt in. It raises TPR, so that of all
// interrupts only the class of the kick gets through, and opens IF for the HLT alone.
#pragma once

#include <array>

#include "arch/x86/lapic.hpp"
#include "arch/x86/paravirt/native.hpp"
#include "kernel/sync/kick_tokens.hpp"

namespace spinkick::paravirt {

namespace detail {

/// Touched by its own CPU only, by wait and by handler; the handler runs between sti_hlt() and cli(), both opaque to
/// the compiler, or at a point where the flag may have either value.
struct alignas(64) IpiSlot {
    volatile bool kicked = false;
    std::uint64_t kicks_taken = 0;
};

} // namespace detail

struct Ipi : Native {
    static constexpr const char* kName = "ipi";

    /// Installs the handler of the kick vector; boot CPU, once.
    static void init() noexcept;

    template <class Done>
    static sync::WaitEnd wait_unless(Done&& done) noexcept {
        if (in_nmi()) {
            (void)done();
            return sync::WaitEnd::not_slept;
        }
        const auto state = disable_interrupts();
        auto& slot = slots_[index(this_cpu())];
        std::uint32_t tpr = 0;
        if (!state.enabled) {
            tpr = raise_tpr();
        }
        // Nothing gets in from here to HLT. A kick that came before is in the flag, one that comes now is pending.
        auto end = sync::WaitEnd::not_slept;
        const bool kicked = slot.kicked;
        slot.kicked = false;
        if (!done() && !kicked) {
            const auto others = other_interrupts(slot);
            x86::sti_hlt();
            x86::cli();
            slot.kicked = false;
            end = other_interrupts(slot) == others ? sync::WaitEnd::slept : sync::WaitEnd::interrupted;
        }
        if (!state.enabled)
            restore_tpr(tpr);
        sync::KickTokens<Ipi>::wait_returned(end);
        restore_interrupts(state);
        return end;
    }

    static void kick(CpuId cpu) noexcept {
        sync::KickTokens<Ipi>::kick(cpu, [cpu] { send(cpu); });
    }
    static constexpr bool kTellsPreemption = false;
    [[nodiscard]] static bool is_preempted(CpuId) noexcept { return false; }
    static void yield_to(CpuId) noexcept {}

    /// The signal alone, without a token.
    static void send(CpuId cpu) noexcept {
        x86::lapic::send(x86::percpu_of(cpu).apic_id, x86::lapic::Delivery::fixed, x86::lapic::kVectorKick);
    }
    /// One sleep, entered and left with interrupts masked, without an account of it: for the proof at boot.
    static void sleep_masked() noexcept {
        const auto tpr = raise_tpr();
        x86::sti_hlt();
        x86::cli();
        restore_tpr(tpr);
    }
    /// Forgets what a CPU that was thrown out of a wait has left behind.
    static void reset_cpu(CpuId cpu) noexcept {
        slots_[index(cpu)].kicked = false;
        sync::KickTokens<Ipi>::forget(cpu);
    }

  private:
    using Slot = detail::IpiSlot;

    /// Lets class 0xf in and nothing below. By the register of the APIC, not by CR8: QEMU's emulated SVM (7.2) aborts
    /// on a write of CR8 by a guest for which its host waits to inject an interrupt.
    static constexpr std::uint32_t kOnlyKicks = 0xe0;
    static_assert((x86::lapic::kVectorKick & 0xf0) == kOnlyKicks + 0x10);

    [[nodiscard]] static std::uint32_t raise_tpr() noexcept {
        const auto before = x86::lapic::read(x86::lapic::Register::TPR);
        x86::lapic::write(x86::lapic::Register::TPR, kOnlyKicks);
        return before;
    }
    static void restore_tpr(std::uint32_t tpr) noexcept { x86::lapic::write(x86::lapic::Register::TPR, tpr); }

    static void on_kick() noexcept;
    [[nodiscard]] static std::uint64_t other_interrupts(const Slot& slot) noexcept {
        return x86::percpu().interrupts - slot.kicks_taken;
    }

    inline static constinit std::array<Slot, kMaxCpus> slots_{};
};
static_assert(sync::ParavirtBackend<Ipi>);

} // namespace spinkick::paravirt
