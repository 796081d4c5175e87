// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/xen_pv/xen_pv.hpp"

#include <array>
#include <atomic>
#include <cstring>

#include "arch/x86/lapic.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/paravirt/xen_error.hpp"
#include "arch/x86/paravirt/xen_events.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/xen_pv/xen_pv_abi.hpp"
#include "boot/layout.h"
#include "kernel/log.hpp"

extern "C" const char xen_pv_trap_stubs[], xen_pv_event_callback[], xen_pv_failsafe_callback[], xen_pv_ap_start[];

namespace spinkick::x86::xen_pv {

namespace {

using paravirt::xen_hypercall;
using paravirt::xen_abi::Hypercall;
namespace xen = paravirt::xen_abi;

constexpr std::size_t kStubBytes = 16;
constexpr std::uint8_t kExceptions = 32;
constexpr std::uint8_t kNmi = 2;

/// Vectors that travel by event channel, one port a CPU each.
constexpr std::array<std::uint8_t, 3> kIpiVectors = {lapic::kVectorCall, lapic::kVectorTestLow, lapic::kVectorTestHigh};

struct alignas(64) Cpu {
    xen::vcpu_info* info = nullptr;
    std::array<std::uint32_t, kIpiVectors.size()> ports{};
    std::uint32_t timer_port = 0;
    std::uint64_t period_ns = 0; ///< 0: the timer is off
    /// Ports bound to this CPU. The pending words are one for all vCPUs: without this, whoever is interrupted first
    /// would take the events of the others.
    std::array<std::uint64_t, 64> own{};
};

constinit std::array<Cpu, kMaxCpus> cpus{};
constinit std::array<abi::trap_info, kExceptions + 1> trap_table{};
/// The vector of each port; 0: none. Written before the port can be pending.
constinit std::array<std::uint8_t, xen::kPorts> vector_of_port{};

/// Xen's shared page appears at this address.
struct alignas(paging::kPageBytes) SharedPage {
    xen::shared_info info;
};
constinit SharedPage shared_page{};

std::uint64_t address_of(const void* object) noexcept { return reinterpret_cast<std::uint64_t>(object); }

Cpu& this_cpu_state() noexcept { return cpus[index(this_cpu())]; }
volatile xen::vcpu_info& info_of_this_cpu() noexcept { return *this_cpu_state().info; }

void fill_trap_table() noexcept {
    for (std::uint8_t vector = 0; vector < kExceptions; ++vector)
        trap_table[vector] = {vector, abi::kTrapMasksEvents, abi::FLAT_KERNEL_CS, 0,
                              address_of(xen_pv_trap_stubs) + vector * kStubBytes};
    trap_table[kExceptions] = {};
}

void register_callback(std::uint16_t type, std::uint64_t address) noexcept {
    const abi::callback_register argument{type, 0, 0, address};
    (void)xen_hypercall(Hypercall::callback_op, abi::CALLBACKOP_register, address_of(&argument));
}

std::uint64_t system_time_ns() noexcept {
    paravirt::pvclock::Reading reading;
    if (!paravirt::pvclock::read(this_cpu_state().info->time, reading))
        return 0;
    return reading.at(rdtsc()).value;
}

void arm_timer(Cpu& cpu) noexcept {
    const abi::vcpu_set_singleshot_timer argument{system_time_ns() + cpu.period_ns, 0, 0};
    (void)xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_set_singleshot_timer, raw(percpu().xen_vcpu_id),
                        address_of(&argument));
}

/// A port's pending bit is cleared before its handler runs, so that an event during the handler is seen again.
void on_upcall(TrapFrame& frame) noexcept {
    auto& cpu = this_cpu_state();
    std::atomic_ref<std::uint8_t> pending(cpu.info->evtchn_upcall_pending);
    // seq_cst: Xen sets port, announcement, flag; they are looked at in the opposite order, none before the one above.
    while (pending.exchange(0, std::memory_order_seq_cst) != 0)
        paravirt::xen_events::take_announced(this_cpu(), *cpu.info, [&](std::uint32_t port) noexcept {
            if ((cpu.own[port / 64] >> (port % 64) & 1) == 0)
                return;
            (void)paravirt::xen_events::clear_pending(port);
            if (port == cpu.timer_port && cpu.period_ns != 0)
                arm_timer(cpu);
            if (vector_of_port[port] != 0)
                traps::deliver(vector_of_port[port], frame);
        });
}

bool unmask_port(Cpu& cpu, std::uint32_t port, std::uint8_t vector) noexcept {
    if (port == 0 || port >= xen::kPorts)
        return false;
    vector_of_port[port] = vector;
    const auto bit = std::uint64_t{1} << (port % 64);
    cpu.own[port / 64] |= bit;
    paravirt::xen_events::unmask(port); // nobody sends yet
    return true;
}

} // namespace

void begin(std::uint64_t start) noexcept {
    detail::active = true;
    const auto& info = *reinterpret_cast<const abi::start_info*>(start);
    (void)map_machine_page(address_of(&shared_page), info.shared_info,
                           paging::kEntryWritable | paging::kEntryNoExecute);
    paravirt::xen_events::mask_all();
    cpus[0].info = &shared_page.info.vcpu_info[0];
    fill_trap_table();
    traps::set_handler(lapic::kVectorXenUpcall, on_upcall, false);
    register_callback(abi::CALLBACKTYPE_event, address_of(xen_pv_event_callback));
    register_callback(abi::CALLBACKTYPE_failsafe, address_of(xen_pv_failsafe_callback));
}

void set_gs_base(const void* block) noexcept {
    (void)xen_hypercall(Hypercall::set_segment_base, abi::SEGBASE_GS_KERNEL, address_of(block));
}

void use_vcpu_info(CpuId cpu, xen::vcpu_info* info) noexcept { cpus[index(cpu)].info = info; }
xen::shared_info* shared_info() noexcept { return &shared_page.info; }

bool upcall_pending() noexcept { return info_of_this_cpu().evtchn_upcall_pending != 0; }
bool interrupts_enabled() noexcept { return info_of_this_cpu().evtchn_upcall_mask == 0; }

// One byte is written and nothing read back: a read-modify-write of mask and pending flag together would lose an event
// that comes in between. This CPU alone writes its mask; Xen reads it on the way back from any entry.
void mask_interrupts() noexcept {
    info_of_this_cpu().evtchn_upcall_mask = 1;
    asm volatile("" ::: "memory");
}

void unmask_interrupts() noexcept {
    asm volatile("" ::: "memory");
    auto& info = info_of_this_cpu();
    info.evtchn_upcall_mask = 0;
    asm volatile("" ::: "memory"); // the mask first: an event after this line is delivered, one before it is seen below
    if (info.evtchn_upcall_pending != 0)
        (void)xen_hypercall(Hypercall::xen_version, 0); // any entry delivers
}

void block() noexcept { (void)xen_hypercall(Hypercall::sched_op, xen::SCHEDOP_block); }

void sleep_masked() noexcept {
    // A port that nobody sends to. An NMI ends the poll.
    const std::uint32_t port = xen::kPorts - 1;
    const xen::sched_poll argument{address_of(&port), 1, 0, 0};
    if (!xen_hypercall(Hypercall::sched_op, xen::SCHEDOP_poll, address_of(&argument)).ok())
        pause();
}

void load_traps_this_cpu() noexcept {
    const abi::physdev_set_iopl argument{1};
    (void)xen_hypercall(Hypercall::physdev_op, abi::PHYSDEVOP_set_iopl, address_of(&argument));
    (void)xen_hypercall(Hypercall::set_trap_table, address_of(trap_table.data()));
    register_callback(abi::CALLBACKTYPE_nmi, address_of(xen_pv_trap_stubs) + kNmi * kStubBytes);
}

void bind_this_cpu() noexcept {
    const auto vcpu = raw(percpu().xen_vcpu_id);
    auto& cpu = this_cpu_state();
    for (std::size_t i = 0; i < kIpiVectors.size(); ++i) {
        xen::evtchn_bind_ipi bind{vcpu, 0};
        const auto result = xen_hypercall(Hypercall::event_channel_op, xen::EVTCHNOP_bind_ipi, address_of(&bind));
        if (!result.ok() || !unmask_port(cpu, bind.port, kIpiVectors[i]))
            log("xen: EVTCHNOP_bind_ipi for vCPU %u gives %s, port %u", vcpu, paravirt::xen_error_text(result).c_str(),
                bind.port);
        std::atomic_ref(cpu.ports[i]).store(bind.port, std::memory_order_release); // senders look at it
    }
    abi::evtchn_bind_virq timer{abi::VIRQ_TIMER, vcpu, 0};
    const auto result = xen_hypercall(Hypercall::event_channel_op, xen::EVTCHNOP_bind_virq, address_of(&timer));
    if (!result.ok() || !unmask_port(cpu, timer.port, lapic::kVectorTimer))
        log("xen: EVTCHNOP_bind_virq for vCPU %u gives %s, port %u", vcpu, paravirt::xen_error_text(result).c_str(),
            timer.port);
    cpu.timer_port = timer.port;
    // Every PV vCPU is born with a timer of 100 Hz on the same VIRQ: it would interrupt what is measured.
    (void)xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_stop_periodic_timer, vcpu);
}

void send_vector(CpuId cpu, std::uint8_t vector) noexcept {
    for (std::size_t i = 0; i < kIpiVectors.size(); ++i) {
        if (kIpiVectors[i] != vector)
            continue;
        const xen::evtchn_port argument{std::atomic_ref(cpus[index(cpu)].ports[i]).load(std::memory_order_acquire)};
        if (argument.port != 0)
            (void)xen_hypercall(Hypercall::event_channel_op, xen::EVTCHNOP_send, address_of(&argument));
    }
}

void send_nmi(CpuId cpu) noexcept {
    (void)xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_send_nmi, raw(percpu_of(cpu).xen_vcpu_id));
}

void set_periodic_timer(Nanoseconds period) noexcept {
    auto& cpu = this_cpu_state();
    cpu.period_ns = period.value;
    if (period.value != 0)
        arm_timer(cpu);
    else
        (void)xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_stop_singleshot_timer, raw(percpu().xen_vcpu_id));
}

void look_again() noexcept {
    auto& info = *this_cpu_state().info;
    paravirt::xen_events::announce_again(this_cpu(), info);
}

std::uint32_t count_vcpus() noexcept {
    std::uint32_t count = 0;
    while (count < kMaxCpus && xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_is_up, count).value >= 0)
        ++count;
    return count;
}

bool start_cpu(CpuId cpu, std::uint64_t stack_top, void* percpu_block) noexcept {
    static constinit abi::vcpu_guest_context context{}; // 5 KiB; one CPU is started at a time
    context = {};
    context.flags = abi::VGCF_in_kernel; // not "online": VCPUOP_up would find it awake already and wake nobody
    auto& regs = context.user_regs;
    regs.rip = address_of(xen_pv_ap_start);
    regs.rsp = stack_top;
    regs.rdi = raw(cpu);
    regs.cs = abi::FLAT_KERNEL_CS;
    regs.ss = abi::FLAT_KERNEL_SS;
    regs.rflags = 1 << 1;
    std::memcpy(context.trap_ctxt, trap_table.data(), kExceptions * sizeof(abi::trap_info));
    context.kernel_ss = abi::FLAT_KERNEL_SS;
    context.kernel_sp = stack_top;
    context.ctrlreg[3] = kernel_root_machine();
    context.event_callback_eip = address_of(xen_pv_event_callback);
    context.failsafe_callback_eip = address_of(xen_pv_failsafe_callback);
    context.gs_base_kernel = address_of(percpu_block);

    const auto vcpu = raw(cpu); // counted from 0 without gaps, as CpuIds are here
    percpu_of(cpu).xen_vcpu_id = XenVcpuId{vcpu};
    auto result = paravirt::Xen::register_vcpu_info(cpu); // before it runs: vCPU 32 and above have no other place
    if (!result.ok()) {
        log("xen: VCPUOP_register_vcpu_info for vCPU %u gives %s", vcpu, paravirt::xen_error_text(result).c_str());
        return false;
    }
    result = xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_initialise, vcpu, address_of(&context));
    if (!result.ok()) {
        log("xen: VCPUOP_initialise for vCPU %u gives %s", vcpu, paravirt::xen_error_text(result).c_str());
        return false;
    }
    result = xen_hypercall(Hypercall::vcpu_op, xen::VCPUOP_up, vcpu);
    if (!result.ok())
        log("xen: VCPUOP_up for vCPU %u gives %s", vcpu, paravirt::xen_error_text(result).c_str());
    return result.ok();
}

void crash() noexcept {
    const xen::sched_shutdown argument{xen::SHUTDOWN_crash};
    for (;;)
        (void)xen_hypercall(Hypercall::sched_op, xen::SCHEDOP_shutdown, address_of(&argument));
}

} // namespace spinkick::x86::xen_pv
