// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/kick_proof.hpp"

#include <atomic>

#include "arch/x86/msr.hpp"
#include "arch/x86/paravirt/ipi.hpp"
#include "arch/x86/paravirt/kvm.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/paravirt/xen_error.hpp"
#include "kernel/clock.hpp"
#include "kernel/machine.hpp"

namespace spinkick::paravirt {
namespace {

// A hypervisor that interprets every instruction is some hundred times slower than one that runs them: the limits are
// for it, and a loaded host may leave a vCPU out for a second. Only a proof that fails waits that long.
constexpr Nanoseconds kCallLimit = seconds(10);
constexpr Nanoseconds kAsleepFor = milliseconds(5); ///< a sleep that lasts this long is one
constexpr Nanoseconds kSleepLimit = seconds(10);
constexpr Nanoseconds kWakeLimit = seconds(10);
constexpr Nanoseconds kRescueLimit = seconds(1);
constexpr std::uint32_t kMostReturns = 1000; ///< sleeps that may return early while nobody kicks

/// One trial, shared between boot CPU and AP. In static memory: an AP that is lost may still write to it. Each trial
/// has its own.
struct Trial {
    const KickTransport* transport = nullptr;
    CpuId self{};
    std::atomic<bool> returned{false};
    bool accepted = false;
    KickOutcome outcome = KickOutcome::works;
    KickText how;
    std::atomic<std::uint32_t> sleeps{0};
    std::atomic<bool> kicked{false};
    std::atomic<std::uint64_t> woke_at{0};
};
constexpr std::size_t kTrials = 8;
constinit Trial trials[kTrials];
constinit std::size_t trials_used = 0;

template <class Condition>
bool wait_for(Nanoseconds limit, Condition condition) noexcept {
    const clock::Deadline deadline(limit);
    while (!condition()) {
        if (deadline.passed())
            return false;
        machine::relax();
    }
    return true;
}

/// An AP that has nothing to do, from the last one down, so that one that was lost is not asked again.
bool find_idle(CpuId& cpu) noexcept {
    for (std::uint32_t n = machine::cpu_count(); n-- > 1;) {
        cpu = machine::online_cpu(n);
        if (wait_for(milliseconds(10), [cpu] { return machine::is_idle(cpu); }))
            return true;
    }
    return false;
}

/// Gets the AP back; false if even an NMI does not reach it.
bool recover(CpuId cpu) noexcept {
    for (int attempt = 0; attempt < 3; ++attempt) {
        if (machine::is_idle(cpu))
            return true;
        machine::rescue(cpu);
        if (wait_for(kRescueLimit, [cpu] { return machine::is_idle(cpu); }))
            return true;
    }
    return false;
}

void call_body(void* argument) {
    auto& trial = *static_cast<Trial*>(argument);
    trial.accepted = trial.transport->try_send(trial.self, trial.outcome, trial.how);
    trial.returned.store(true, std::memory_order_release); // the result above comes with it
}

void sleep_body(void* argument) {
    auto& trial = *static_cast<Trial*>(argument);
    const auto state = Native::disable_interrupts();
    // Acquire and release below: nothing but the flags is handed over; the order against the sleep is the transport's
    // duty, and is what this proves.
    while (!trial.kicked.load(std::memory_order_acquire) &&
           trial.sleeps.load(std::memory_order_relaxed) <= kMostReturns) {
        trial.sleeps.fetch_add(1, std::memory_order_release);
        trial.transport->sleep();
    }
    trial.woke_at.store(clock::now().value | 1, std::memory_order_release); // 0 means: still asleep
    Native::restore_interrupts(state);
}

/// A failure that leaves the AP stuck: gets it back and says whether that worked.
KickProof failed_and_stuck(KickOutcome outcome, CpuId cpu, const char* what) noexcept {
    KickProof proof;
    proof.outcome = outcome;
    if (recover(cpu))
        proof.how.set("%s", what);
    else
        proof.how.set("%s, and CPU %u cannot be rescued", what, raw(cpu));
    return proof;
}

/// True if the AP lies in one sleep for kAsleepFor.
bool falls_asleep(const Trial& trial) noexcept {
    std::uint32_t seen = 0;
    auto since = clock::now();
    return wait_for(kSleepLimit, [&] {
        const auto sleeps = trial.sleeps.load(std::memory_order_acquire);
        if (trial.woke_at.load(std::memory_order_acquire) != 0)
            return false;
        if (sleeps != seen) {
            seen = sleeps;
            since = clock::now();
        }
        return seen != 0 && clock::now() - since >= kAsleepFor;
    });
}

bool accept_hypercall(const HypercallResult& result, KickOutcome& outcome, KickText& how) noexcept {
    if (result.fault.happened) {
        outcome = KickOutcome::fault;
        if (result.fault.vector == 14)
            how.set("#PF on the instruction, CR2=0x%lx", result.fault.address);
        else
            how.set("%s on the instruction", result.fault.vector == 6 ? "#UD" : "#GP");
        return false;
    }
    if (result.value < 0) {
        outcome = KickOutcome::error;
        how.set("KVM_HC_KICK_CPU returns %ld%s", result.value,
                result.value == -kvm_abi::KVM_ENOSYS ? " (KVM_ENOSYS)" : "");
        return false;
    }
    return true;
}

template <KvmKick Transport>
bool try_kvm_hypercall(CpuId target, KickOutcome& outcome, KickText& how) noexcept {
    return accept_hypercall(Kvm::send_hypercall(target, Transport), outcome, how);
}

template <KvmKick Transport>
void send_kvm_hypercall(CpuId target) noexcept {
    (void)Kvm::send_hypercall(target, Transport);
}

bool try_remrd(CpuId target, KickOutcome& outcome, KickText& how) noexcept {
    if (!x86::lapic::is_x2apic()) {
        Kvm::send_remrd(target); // a store to the APIC page does not fault
        return true;
    }
    const auto destination = std::uint64_t{raw(x86::percpu_of(target).apic_id)} << 32;
    if (x86::wrmsr_safe(x86::Msr::IA32_X2APIC_ICR,
                        destination | static_cast<std::uint32_t>(x86::lapic::Delivery::remote_read)))
        return true;
    outcome = KickOutcome::fault;
    how.set("#GP on the ICR write");
    return false;
}

bool try_ipi(CpuId target, KickOutcome&, KickText&) noexcept {
    Ipi::send(target);
    return true;
}

bool try_evtchn(CpuId target, KickOutcome& outcome, KickText& how) noexcept {
    const auto port = Xen::port_of(target);
    if (port == 0) {
        outcome = KickOutcome::error;
        how.set("CPU %u has no event channel", raw(target));
        return false;
    }
    const xen_abi::evtchn_port argument{port};
    const auto result = xen_hypercall(xen_abi::Hypercall::event_channel_op, xen_abi::EVTCHNOP_send,
                                      reinterpret_cast<std::uint64_t>(&argument));
    if (result.ok())
        return true;
    outcome = result.fault.happened ? KickOutcome::fault : KickOutcome::error;
    if (result.fault.happened)
        how.set("%s raises vector %u", name(vendors_instruction()), result.fault.vector);
    else
        how.set("EVTCHNOP_send returns %s", xen_error_text(result).c_str());
    return false;
}

void sleep_in_poll() noexcept {
    Xen::poll_once();
    (void)Xen::clear_own_pending(); // the body looks at its flag next
}

constexpr KickTransport kIpi{"ipi", try_ipi, Ipi::send, Ipi::sleep_masked};
constexpr KickTransport kVmcall{name(KvmKick::vmcall), try_kvm_hypercall<KvmKick::vmcall>,
                                send_kvm_hypercall<KvmKick::vmcall>, x86::hlt};
constexpr KickTransport kVmmcall{name(KvmKick::vmmcall), try_kvm_hypercall<KvmKick::vmmcall>,
                                 send_kvm_hypercall<KvmKick::vmmcall>, x86::hlt};
constexpr KickTransport kRemrd{name(KvmKick::remrd), try_remrd, Kvm::send_remrd, x86::hlt};
constexpr KickTransport kEvtchn{"event channel", try_evtchn, Xen::send, sleep_in_poll};

} // namespace

const KickTransport& ipi_transport() noexcept { return kIpi; }
const KickTransport& kvm_vmcall_transport() noexcept { return kVmcall; }
const KickTransport& kvm_vmmcall_transport() noexcept { return kVmmcall; }
const KickTransport& kvm_remrd_transport() noexcept { return kRemrd; }
const KickTransport& xen_evtchn_transport() noexcept { return kEvtchn; }

KickProof prove(const KickTransport& transport) noexcept {
    KickProof proof;
    CpuId cpu{};
    if (trials_used == kTrials || !find_idle(cpu)) {
        proof.how.set("no idle CPU to try it on");
        return proof;
    }
    auto& trial = trials[trials_used++];
    trial.transport = &transport;
    trial.self = cpu;

    if (!machine::start_work(cpu, {call_body, &trial, nullptr})) {
        proof.how.set("CPU %u does not take work", raw(cpu));
        return proof;
    }
    if (!wait_for(kCallLimit, [&] { return trial.returned.load(std::memory_order_acquire); }))
        return failed_and_stuck(KickOutcome::never_returned, cpu, "the call never returns");
    if (!trial.accepted) {
        proof.outcome = trial.outcome;
        proof.how = trial.how;
        return proof;
    }
    if (!wait_for(kCallLimit, [cpu] { return machine::is_idle(cpu); }) ||
        !machine::start_work(cpu, {sleep_body, &trial, nullptr})) {
        proof.how.set("CPU %u does not take work", raw(cpu));
        return proof;
    }
    if (!falls_asleep(trial)) {
        trial.kicked.store(true, std::memory_order_release); // ends the body, if it runs
        return failed_and_stuck(KickOutcome::no_sleep, cpu, "the sleep returns at once");
    }
    const auto begin = clock::now();
    // seq_cst: the flag is out before the kick; whoever is woken finds it.
    trial.kicked.exchange(true, std::memory_order_seq_cst);
    transport.send(cpu);
    if (!wait_for(kWakeLimit, [&] { return trial.woke_at.load(std::memory_order_acquire) != 0; }))
        return failed_and_stuck(KickOutcome::no_wake, cpu, "the kick does not end the sleep");
    proof.outcome = KickOutcome::works;
    proof.kick_to_wake = Nanoseconds{trial.woke_at.load(std::memory_order_relaxed)} - begin;
    proof.how.set("kick to wake %lu us", static_cast<unsigned long>(proof.kick_to_wake.value / 1000));
    (void)wait_for(kCallLimit, [cpu] { return machine::is_idle(cpu); });
    return proof;
}

} // namespace spinkick::paravirt
