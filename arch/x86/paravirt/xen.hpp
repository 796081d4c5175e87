// SPDX-License-Identifier: BSD-2-Clause
//
// Sleep and kick by Xen's event channels, for HVM and PVH guests: every vCPU owns one IPI port, bound and left masked,
// so that it never raises an upcall; the waiter polls that port, the kicker sends to it. A port that is pending ends
// the next poll at once, so a kick before the poll is kept.
//
// Who may clear the pending bit. Only a wait that is the outermost of its CPU, and only where the caller's condition is
// looked at afterwards: before done(), or right before the return, after which every caller looks again. A wait in an
// interrupt handler that interrupted a wait finds the depth at 2 and leaves the bit alone: it may be the kick of the
// interrupted one, whose poll must still find it. The price is that the nested wait may then return at once, again and
// again: it spins.
//
//   waiter:  depth++ ; clear pending ; done()  ; poll                        kicker: publish ; send
//   A send before the clear: its publication is seen by done(). A send after it: the poll finds the port pending.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "arch/x86/lapic.hpp"
#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/native.hpp"
#include "arch/x86/paravirt/steal_time.hpp"
#include "arch/x86/paravirt/xen_abi.hpp"
#include "kernel/command_line.hpp"
#include "kernel/sync/kick_tokens.hpp"

namespace spinkick::paravirt {

namespace detail {

struct alignas(64) XenSlot {
    std::atomic<std::uint32_t> port{0};
    std::uint32_t depth = 0; ///< waits that this CPU is in; touched by it alone, interrupts undo what they do
    std::uint64_t polls = 0;
    std::uint64_t sends = 0; ///< by this CPU
    std::atomic<bool> registered{false};
};

} // namespace detail

struct Xen : Native {
    static constexpr const char* kName = "xen";

    /// Puts the shared page into the image, masks all ports and, if asked to, changes over to FIFO event channels; boot
    /// CPU, once, on the final page tables.
    [[nodiscard]] static HypercallResult init(EventChannels form) noexcept;
    /// Registers vcpu_info, binds the port, registers the runstate area. Each CPU, once; until it has succeeded this
    /// CPU only spins, and kicks to it go nowhere: it cannot be asleep.
    [[nodiscard]] static HypercallResult init_this_cpu() noexcept;

    /// Gives Xen the vcpu_info of a CPU: the calling one, or one that does not run yet. Once each.
    [[nodiscard]] static HypercallResult register_vcpu_info(CpuId cpu) noexcept;

    template <class Done>
    static sync::WaitEnd wait_unless(Done&& done) noexcept {
        auto& slot = slots_[index(this_cpu())];
        if (in_nmi() || slot.port.load(std::memory_order_relaxed) == 0) {
            (void)done();
            return sync::WaitEnd::not_slept;
        }
        const bool outermost = ++slot.depth == 1;
        const bool kicked = outermost && clear_pending(slot);
        auto end = sync::WaitEnd::not_slept;
        if (!done() && !kicked) {
            const auto before = x86::percpu().interrupts;
            // A kick since the look, or one that a nested wait has left here for the wait around it: the poll comes
            // back at once, and is no sleep.
            const bool signalled = is_pending(this_cpu());
            poll(slot);
            if (outermost)
                (void)clear_pending(slot);
            if (!signalled)
                end = interrupted_since(before) ? sync::WaitEnd::interrupted : sync::WaitEnd::slept;
        }
        --slot.depth;
        sync::KickTokens<Xen>::wait_returned(end);
        return end;
    }

    static void kick(CpuId cpu) noexcept {
        sync::KickTokens<Xen>::kick(cpu, [cpu] { send(cpu); });
    }
    [[nodiscard]] static bool is_preempted(CpuId cpu) noexcept { return steal_time::is_preempted_by_xen(cpu); }
    /// Xen has no directed yield; giving up the own time is the nearest.
    static void yield_to(CpuId) noexcept;

    /// The signal alone, without a token.
    static void send(CpuId cpu) noexcept;
    /// One poll of this CPU's own port, without an account of it: for the proof at boot.
    static void poll_once() noexcept { poll(slots_[index(this_cpu())]); }
    static bool clear_own_pending() noexcept { return clear_pending(slots_[index(this_cpu())]); }
    static void reset_cpu(CpuId cpu) noexcept {
        slots_[index(cpu)].depth = 0;
        sync::KickTokens<Xen>::forget(cpu);
    }

    /// The vcpu_info of a CPU; nullptr if it is not registered.
    [[nodiscard]] static volatile xen_abi::vcpu_info* info_of(CpuId cpu) noexcept;
    /// The page that all vCPUs share with Xen: pending and mask bits of all ports.
    [[nodiscard]] static xen_abi::shared_info& event_page() noexcept;
    /// Address of something in the image as Xen counts this guest's memory: machine addresses for a PV guest.
    [[nodiscard]] static std::uint64_t address_for_xen(const void* object) noexcept;
    /// The port of a CPU, 0 for none.
    [[nodiscard]] static std::uint32_t port_of(CpuId cpu) noexcept {
        return slots_[index(cpu)].port.load(std::memory_order_acquire); // what comes with a port is ready
    }
    [[nodiscard]] static bool is_pending(CpuId cpu) noexcept;
    [[nodiscard]] static bool is_masked(CpuId cpu) noexcept;
    [[nodiscard]] static std::uint64_t polls() noexcept;
    [[nodiscard]] static std::uint64_t sends() noexcept;

  private:
    using Slot = detail::XenSlot;

    static bool clear_pending(Slot& slot) noexcept;
    static void poll(Slot& slot) noexcept;
    static bool interrupted_since(std::uint64_t interrupts) noexcept;

    inline static constinit std::array<Slot, kMaxCpus> slots_{};
};
static_assert(sync::ParavirtBackend<Xen>);

} // namespace spinkick::paravirt
