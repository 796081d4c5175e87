// SPDX-License-Identifier: BSD-2-Clause
//
// kernel/machine.hpp on a machine with rings, IF and a local APIC.
#include "kernel/machine.hpp"

#include <array>
#include <atomic>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/cr.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/ipi.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/levels.hpp"
#include "arch/x86/machine_steps.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/ipi.hpp"
#include "arch/x86/paravirt/kvm.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/paravirt/steal_time.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/power.hpp"
#include "arch/x86/rescue.hpp"
#include "arch/x86/smp.hpp"
#include "arch/x86/time_stamp.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/tsc.hpp"
#include "boot/layout.h"
#include "drivers/console.hpp"
#include "kernel/clock.hpp"
#include "kernel/log.hpp"
#include "kernel/symbols.hpp"
#include "kernel/test/runner.hpp"

extern "C" const char text_begin[], text_end[];

namespace spinkick {
namespace x86 {
namespace {

enum class WorkState : std::uint32_t { idle, posted, running };

/// What a CPU has been given. Written by the giver while `state` is idle, by the CPU itself afterwards.
struct alignas(64) Mailbox {
    std::atomic<WorkState> state{WorkState::idle};
    machine::Work work;
};

constinit std::array<Mailbox, kMaxCpus> mailboxes{};
using Tick = void (*)() noexcept;
constinit Tick tick_function = nullptr;
constinit Tick test_interrupt = nullptr;
constinit std::atomic<bool> stopping{false};

bool in_text(std::uint64_t address) noexcept {
    return address >= reinterpret_cast<std::uint64_t>(text_begin) &&
           address < reinterpret_cast<std::uint64_t>(text_end);
}

bool is_behind_hlt(std::uint64_t rip) noexcept {
    return in_text(rip - 1) && *reinterpret_cast<const std::uint8_t*>(rip - 1) == 0xf4;
}

/// VMCALL, VMMCALL or SYSCALL stand right before `rip`.
bool is_behind_hypercall(std::uint64_t rip) noexcept {
    if (!in_text(rip - 3))
        return false;
    const auto* end = reinterpret_cast<const std::uint8_t*>(rip);
    const bool vmcall = end[-3] == 0x0f && end[-2] == 0x01 && (end[-1] == 0xc1 || end[-1] == 0xd9);
    return vmcall || (end[-2] == 0x0f && end[-1] == 0x05);
}

void print_backtrace(std::uint64_t rip, std::uint64_t rbp) noexcept {
    constexpr unsigned kMaxFrames = 16;
    const auto& block = percpu();
    for (unsigned i = 0; i < kMaxFrames && in_text(rip); ++i) {
        const auto symbol = symbol_of(rip);
        log("#   [%u] 0x%lx %.*s+0x%lx", i, rip, static_cast<int>(symbol.name.size()), symbol.name.data(),
            symbol.offset);
        // Only frames on this CPU's main stack are followed; a wild RBP ends the trace, not the kernel.
        if (rbp < block.stack_low || rbp + 16 > block.stack_high || (rbp & 7) != 0)
            break;
        const auto* frame = reinterpret_cast<const std::uint64_t*>(rbp);
        rip = frame[1];
        if (frame[0] <= rbp)
            break;
        rbp = frame[0];
    }
}

void stop_others() noexcept {
    stopping.store(true, std::memory_order_release); // their NMI handlers look at it
    for (std::uint32_t cpu = 0; cpu < kMaxCpus && cpu < smp::placed_count(); ++cpu)
        if (CpuId{cpu} != this_cpu() && percpu_of(CpuId{cpu}).online.load(std::memory_order_relaxed))
            ipi::send_nmi(CpuId{cpu});
}

[[noreturn]] void park() noexcept {
    for (;;) {
        if (xen_pv::is_active())
            xen_pv::sleep_masked();
        else
            hlt();
    }
}

void on_nmi(TrapFrame&) noexcept {
    if (stopping.load(std::memory_order_acquire))
        park();
    levels::on_nmi();
}

/// Who dies. Not by percpu(): a bad GS base may be what this CPU dies of.
std::uint32_t own_number() noexcept { return xen_pv::is_active() ? raw(this_cpu()) : raw(initial_apic_id()); }
constexpr std::uint32_t kNobody = ~0u;
constinit std::atomic<std::uint32_t> dying{kNobody};

/// One CPU has the last words. A second fault of the same one ends the machine at once; another CPU waits for the end.
void claim_last_words() noexcept {
    auto who = kNobody;
    if (dying.compare_exchange_strong(who, own_number(), std::memory_order_seq_cst))
        return;
    if (who == own_number())
        power::off(static_cast<std::uint8_t>(machine::Exit::panic));
    park();
}

void on_timer(TrapFrame&) noexcept {
    if (tick_function != nullptr)
        tick_function();
}

void on_call(TrapFrame&) noexcept {} // its only work is to end the HLT of the idle loop

/// Runs work under a rescue context of its own; a body may run work in turn, and a rescue ends the innermost.
void run(const machine::Work& work) noexcept {
    auto& block = percpu();
    RescueContext context;
    auto* const outer = block.rescue_context;
    block.rescue.store(false, std::memory_order_relaxed); // an order for an earlier body is void
    block.rescue_context = &context;
    unmask_interrupts();
    const bool completed = run_rescuable(work.fn, work.argument, &context);
    block.rescue_context = outer;
    unmask_interrupts();
    if (work.finished != nullptr)
        work.finished(work.argument, completed);
}

/// From here on only this CPU writes: the others are stopped first, then the console's lock is broken.
void begin_last_words() noexcept {
    claim_last_words();
    mask_interrupts();
    stop_others();
    drivers::console::break_lock();
}

[[noreturn]] void end_with(std::string_view reason, std::uint64_t rip, std::uint64_t rbp) noexcept {
    log("PANIC: %.*s", static_cast<int>(reason.size()), reason.data());
    log("# cpu %u, test %.*s", raw(this_cpu()), static_cast<int>(test::running_test_name().size()),
        test::running_test_name().data());
    print_backtrace(rip, rbp);
    machine::power_off(machine::Exit::panic);
}

} // namespace

void die_with_frame(const TrapFrame& f, std::string_view reason) noexcept {
    begin_last_words();
    log("# RAX %016lx RBX %016lx RCX %016lx RDX %016lx", f.rax, f.rbx, f.rcx, f.rdx);
    log("# RSI %016lx RDI %016lx RBP %016lx RSP %016lx", f.rsi, f.rdi, f.rbp, f.rsp);
    log("# R8  %016lx R9  %016lx R10 %016lx R11 %016lx", f.r8, f.r9, f.r10, f.r11);
    log("# R12 %016lx R13 %016lx R14 %016lx R15 %016lx", f.r12, f.r13, f.r14, f.r15);
    log("# RIP %016lx RFLAGS %08lx CR2 %016lx CR3 %016lx", f.rip, f.rflags, read_cr2(), read_cr3());
    end_with(reason, f.rip, f.rbp);
}

namespace machine_steps {

void idle_loop() noexcept {
    auto& mailbox = mailboxes[index(this_cpu())];
    for (;;) {
        mask_interrupts();
        // Acquire: the work that was posted with this state is there.
        if (mailbox.state.load(std::memory_order_acquire) == WorkState::posted) {
            mailbox.state.store(WorkState::running, std::memory_order_relaxed);
            run(mailbox.work);
            // Release: what the body and `finished` wrote is seen by whoever gives the next work.
            mailbox.state.store(WorkState::idle, std::memory_order_release);
        } else {
            sleep_until_interrupt();
        }
    }
}

void install_handlers() noexcept {
    traps::set_handler(lapic::kVectorTimer, on_timer);
    traps::set_handler(lapic::kVectorCall, on_call);
    traps::set_nmi_handler(on_nmi);
}

} // namespace machine_steps
} // namespace x86

namespace machine {

using namespace x86;

void power_off(Exit exit) noexcept {
    drivers::console::drain();
    power::off(static_cast<std::uint8_t>(exit));
}

void die(std::string_view reason) noexcept {
    begin_last_words();
    end_with(reason, reinterpret_cast<std::uint64_t>(__builtin_return_address(0)),
             reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)));
}

std::uint32_t cpu_count() noexcept { return smp::online_count(); }
std::uint32_t cpus_found() noexcept { return smp::placed_count(); }
CpuId online_cpu(std::uint32_t n) noexcept { return smp::online_cpu(n); }
CpuId this_cpu() noexcept { return x86::this_cpu(); }
std::span<std::byte> scratch_of(CpuId cpu) noexcept { return smp::scratch_of(cpu); }

namespace {
constexpr std::uint64_t alias_of(CpuId cpu) noexcept { return paging::kAliasBase + index(cpu) * paging::kPageBytes; }
} // namespace
std::byte* map_alias(CpuId cpu) noexcept {
    const auto page = reinterpret_cast<std::uint64_t>(scratch_of(cpu).data());
    return paging::map_again(alias_of(cpu), page) ? reinterpret_cast<std::byte*>(alias_of(cpu)) : nullptr;
}
void unmap_alias(CpuId cpu) noexcept { paging::unmap_page(alias_of(cpu)); }
void flush_alias(CpuId cpu) noexcept { paging::flush_page(alias_of(cpu)); }

std::uint64_t lock_event(CpuId cpu, sync::LockEvent event) noexcept {
    // Written by its own CPU with one instruction; a 64-bit read is whole.
    return *const_cast<const volatile std::uint64_t*>(&percpu_of(cpu).events[static_cast<std::size_t>(event)]);
}
std::uint64_t blocked_waits(CpuId cpu, std::size_t bucket) noexcept {
    return *const_cast<const volatile std::uint64_t*>(&percpu_of(cpu).blocked.buckets[bucket]); // as above
}
stress::FlightLog flight_log(CpuId cpu) noexcept {
    const auto& block = percpu_of(cpu);
    // Written by its own CPU with one instruction.
    return {block.flight_ring, *const_cast<const volatile std::uint64_t*>(&block.flight_written)};
}
Nanoseconds steal_time(CpuId cpu) noexcept { return paravirt::steal_time::steal(cpu); }
bool tells_steal_time(CpuId cpu) noexcept { return paravirt::steal_time::is_registered(cpu); }
bool take_guest_stopped() noexcept { return paravirt::pvclock::take_guest_stopped(); }
UntakenKicks untaken_kicks(CpuId cpu) noexcept {
    return {sync::KickTokens<paravirt::Ipi>::unspent(cpu),
            sync::KickTokens<paravirt::Kvm>::unspent(cpu) + sync::KickTokens<paravirt::Xen>::unspent(cpu)};
}
std::uint64_t interrupts_taken(CpuId cpu) noexcept {
    return *const_cast<const volatile std::uint64_t*>(&percpu_of(cpu).interrupts);
}
void set_test_interrupt(void (*handler)() noexcept) noexcept {
    test_interrupt = handler;
    traps::set_handler(lapic::kVectorTestLow, [](TrapFrame&) noexcept { test_interrupt(); });
}
void send_test_interrupt(CpuId cpu) noexcept { ipi::send(cpu, lapic::kVectorTestLow); }
Tsc time_stamp() noexcept { return time_stamp_ordered(); }
SkewInfo skew_of(CpuId cpu) noexcept {
    if (cpu == CpuId{0})
        return {0, 0, true};
    const auto skew = tsc::skew_of(cpu);
    return {skew.ticks, skew.error_ticks, skew.measured};
}
void relax() noexcept { pause(); }

void yield() noexcept {
    // A port is given to a CPU when its back end has been set up: then hypercalls work.
    if (paravirt::Xen::port_of(this_cpu()) != 0)
        paravirt::Xen::yield_to(this_cpu());
    else
        pause();
}
bool interrupts_enabled() noexcept { return x86::interrupts_enabled(); }

void idle_unless(bool (*done)(void*), void* argument) noexcept {
    mask_interrupts();
    if (!done(argument))
        sleep_until_interrupt();
    unmask_interrupts();
}

void wake(CpuId cpu) noexcept { ipi::send(cpu, lapic::kVectorCall); }

bool start_work(CpuId cpu, const Work& work) noexcept {
    auto& mailbox = mailboxes[index(cpu)];
    if (mailbox.state.load(std::memory_order_acquire) != WorkState::idle)
        return false; // pairs with run()'s release
    mailbox.work = work;
    mailbox.state.store(WorkState::posted, std::memory_order_release); // the work above comes with it
    wake(cpu);
    return true;
}

void run_here(const Work& work) noexcept { run(work); }

bool is_idle(CpuId cpu) noexcept {
    return mailboxes[index(cpu)].state.load(std::memory_order_acquire) == WorkState::idle; // pairs with run()'s release
}

void rescue(CpuId cpu) noexcept {
    x86::rescue(cpu);
    prod(cpu);
}

void prod(CpuId cpu) noexcept {
    if (!xen_pv::is_active())
        return;
    paravirt::Xen::send(cpu); // ends a poll; nothing, without a port
    wake(cpu);                // ends a block, which a masked port does not
}

CpuState inspect(CpuId cpu, Nanoseconds span) noexcept {
    CpuState state;
    if (state.event_port = paravirt::Xen::port_of(cpu); state.event_port != 0) {
        state.port_pending = paravirt::Xen::is_pending(cpu);
        state.port_masked = paravirt::Xen::is_masked(cpu);
    }
    auto& block = percpu_of(cpu);
    auto& snapshot = block.snapshot;
    const auto request = snapshot.request.load(std::memory_order_relaxed) + 1; // one asker at a time: the watchdog
    snapshot.request.store(request, std::memory_order_release);
    ipi::send_nmi(cpu);
    const clock::Deadline deadline(span), patience({span.value / 4});
    bool prodded = false;
    while (snapshot.answer.load(std::memory_order_acquire) !=
           request) { // acquires the fields that come with the answer
        if (deadline.passed())
            return state;
        if (!prodded && patience.passed()) {
            prod(cpu);
            prodded = true;
        }
        pause();
    }
    state.answered = true;
    state.instruction = snapshot.rip;
    state.interrupts_on = (snapshot.rflags & kRflagsIF) != 0;
    state.in_service = snapshot.in_service;
    state.requested = snapshot.requested;
    state.tpr = snapshot.tpr;
    state.in_hypercall = is_behind_hypercall(snapshot.rip);
    state.halted = state.in_hypercall || is_behind_hlt(snapshot.rip);
    return state;
}

void set_tick(void (*tick)() noexcept, Nanoseconds period) noexcept {
    tick_function = tick;
    const auto interval = tick == nullptr ? Nanoseconds{0} : period;
    if (xen_pv::is_active())
        xen_pv::set_periodic_timer(interval);
    else
        lapic::set_periodic_timer(interval);
}

} // namespace machine
} // namespace spinkick
