// SPDX-License-Identifier: BSD-2-Clause
//
// Sleep and kick as KVM's PV_UNHALT has them: the waiter halts, with interrupts masked or not as it found them, and a
// kick ends the halt whatever the mask is. KVM keeps a kick for a vCPU that runs until its next HLT, which then returns
// at once.
//
// The kick is KVM_HC_KICK_CPU; or an ICR write with delivery mode "remote read", which reaches the same code in KVM and
// needs no hypercall instruction. Which of them, and by which instruction, is settled by a proof at boot
// (kick_proof.hpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/x86/lapic.hpp"
#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/native.hpp"
#include "arch/x86/paravirt/steal_time.hpp"
#include "kernel/sync/kick_tokens.hpp"

namespace spinkick::paravirt {

enum class KvmKick : std::uint8_t { vmcall, vmmcall, remrd };

[[nodiscard]] constexpr const char* name(KvmKick kick) noexcept {
    switch (kick) {
    case KvmKick::vmcall:
        return "hypercall (vmcall)";
    case KvmKick::vmmcall:
        return "hypercall (vmmcall)";
    case KvmKick::remrd:
        return "remote-read IPI";
    }
    return "";
}

struct Kvm : Native {
    static constexpr const char* kName = "kvm";

    template <class Done>
    static sync::WaitEnd wait_unless(Done&& done) noexcept {
        if (in_nmi()) {
            (void)done();
            return sync::WaitEnd::not_slept;
        }
        const auto state = disable_interrupts();
        auto end = sync::WaitEnd::not_slept;
        if (!done()) {
            const auto before = x86::percpu().interrupts;
            if (state.enabled)
                x86::sti_hlt();
            else
                x86::hlt();
            end = x86::percpu().interrupts == before ? sync::WaitEnd::slept : sync::WaitEnd::interrupted;
        }
        sync::KickTokens<Kvm>::wait_returned(end);
        restore_interrupts(state);
        return end;
    }

    static void kick(CpuId cpu) noexcept {
        sync::KickTokens<Kvm>::kick(cpu, [cpu] {
            const auto transport = kick_transport.load(std::memory_order_relaxed);
            if (transport == KvmKick::remrd)
                send_remrd(cpu);
            else if (!send_hypercall(cpu, transport).ok())
                failed_kicks.fetch_add(1, std::memory_order_relaxed); // a statistic
        });
    }

    [[nodiscard]] static bool is_preempted(CpuId cpu) noexcept { return steal_time::is_preempted_by_kvm(cpu); }
    [[nodiscard]] static bool can_yield() noexcept { return yields.load(std::memory_order_relaxed); }
    static void yield_to(CpuId cpu) noexcept {
        if (!can_yield())
            return;
        // Not by the transport of the kick, which may be changed to one that is no hypercall.
        (void)kvm_hypercall(yield_instruction.load(std::memory_order_relaxed), kvm_abi::Hypercall::SCHED_YIELD,
                            raw(x86::percpu_of(cpu).apic_id));
    }

    /// The signal alone, without a token.
    static HypercallResult send_hypercall(CpuId cpu, KvmKick transport) noexcept {
        return kvm_hypercall(instruction_of(transport), kvm_abi::Hypercall::KICK_CPU, 0,
                             raw(x86::percpu_of(cpu).apic_id));
    }
    static void send_remrd(CpuId cpu) noexcept {
        x86::lapic::send(x86::percpu_of(cpu).apic_id, x86::lapic::Delivery::remote_read, 0);
    }
    static void reset_cpu(CpuId cpu) noexcept { sync::KickTokens<Kvm>::forget(cpu); }

    [[nodiscard]] static constexpr HypercallInstruction instruction_of(KvmKick transport) noexcept {
        return transport == KvmKick::vmmcall ? HypercallInstruction::vmmcall : HypercallInstruction::vmcall;
    }
    [[nodiscard]] static constexpr KvmKick by(HypercallInstruction instruction) noexcept {
        return instruction == HypercallInstruction::vmmcall ? KvmKick::vmmcall : KvmKick::vmcall;
    }

    // Written at boot, and by tests that compare transports. relaxed everywhere: each is a switch of its own.
    inline static constinit std::atomic<KvmKick> kick_transport{KvmKick::vmcall};
    inline static constinit std::atomic<HypercallInstruction> yield_instruction{HypercallInstruction::vmcall};
    inline static constinit std::atomic<bool> yields{false}; ///< SCHED_YIELD is offered and hypercalls work
    inline static constinit std::atomic<std::uint64_t> failed_kicks{0};
};
static_assert(sync::ParavirtBackend<Kvm>);

} // namespace spinkick::paravirt
