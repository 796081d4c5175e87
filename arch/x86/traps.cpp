// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/traps.hpp"

#include <array>
#include <utility>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/cr.hpp"
#include "arch/x86/descriptors.hpp"
#include "arch/x86/fixup.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/ipi.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/levels.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/rescue.hpp"
#include "arch/x86/smp.hpp"
#include "boot/layout.h"
#include "kernel/text.hpp"

extern "C" const char trap_stubs[], rescue_landing[];
extern "C" const char trap_entry_begin[], trap_entry_end[]; // linker.ld
extern "C" const spinkick::x86::Fixup fixups_begin[], fixups_end[];

namespace spinkick::x86 {
namespace {

enum Vector : std::uint8_t { kNmi = 2, kUd = 6, kDf = 8, kGp = 13, kPf = 14, kMc = 18, kFirstInterrupt = 32 };

struct [[gnu::packed]] Gate {
    std::uint16_t offset_low;
    std::uint16_t selector;
    std::uint8_t ist;
    std::uint8_t type;
    std::uint16_t offset_middle;
    std::uint32_t offset_high;
    std::uint32_t reserved;
};
static_assert(sizeof(Gate) == 16, "Intel SDM 3A figure 6-8");

struct [[gnu::packed]] Pointer {
    std::uint16_t limit;
    std::uint64_t base;
};

struct Slot {
    InterruptHandler handler = nullptr;
    bool needs_eoi = true;
};

constexpr std::size_t kStubBytes = 16;
constexpr std::uint8_t kInterruptGate = 0x8e; // present, DPL 0: IF is cleared on entry

constinit std::array<Gate, 256> idt{};
constinit std::array<Slot, 256> slots{};
constinit InterruptHandler nmi_handler = nullptr;

constexpr std::array<const char*, 32> kNames = {"#DE divide error",
                                                "#DB debug",
                                                "NMI",
                                                "#BP breakpoint",
                                                "#OF overflow",
                                                "#BR bound range",
                                                "#UD invalid opcode",
                                                "#NM device not available",
                                                "#DF double fault",
                                                "coprocessor segment overrun",
                                                "#TS invalid TSS",
                                                "#NP segment not present",
                                                "#SS stack fault",
                                                "#GP general protection",
                                                "#PF page fault",
                                                "reserved",
                                                "#MF x87",
                                                "#AC alignment check",
                                                "#MC machine check",
                                                "#XM SIMD",
                                                "#VE virtualization",
                                                "#CP control protection",
                                                "reserved",
                                                "reserved",
                                                "reserved",
                                                "reserved",
                                                "reserved",
                                                "reserved",
                                                "#HV hypervisor injection",
                                                "#VC VMM communication",
                                                "#SX security",
                                                "reserved"};

bool fix_up(TrapFrame& frame) noexcept {
    if (frame.vector != kUd && frame.vector != kGp && frame.vector != kPf)
        return false;
    for (const auto* fixup = fixups_begin; fixup != fixups_end; ++fixup) {
        if (fixup->instruction != frame.rip)
            continue;
        frame.rax = frame.vector;
        frame.rdx = frame.vector == kPf ? read_cr2() : 0;
        frame.rip = fixup->landing;
        return true;
    }
    return false;
}

void take_snapshot(PerCpu& block, const TrapFrame& frame) noexcept {
    const auto request = block.snapshot.request.load(std::memory_order_acquire); // pairs with the asker's release
    if (block.snapshot.answer.load(std::memory_order_relaxed) == request)
        return;
    block.snapshot.rip = frame.rip;
    block.snapshot.rflags = frame.rflags;
    block.snapshot.rsp = frame.rsp;
    block.snapshot.rbp = frame.rbp;
    if (!xen_pv::is_active()) {
        block.snapshot.in_service = lapic::highest_in_service();
        block.snapshot.requested = lapic::highest_requested();
        block.snapshot.tpr = lapic::read(lapic::Register::TPR);
    }
    block.snapshot.answer.store(request, std::memory_order_release); // the fields above are there when this is seen
}

/// Sends this CPU back to where its test body was called, if it is in one and does not hold the console.
void leave_body(PerCpu& block, TrapFrame& frame) noexcept {
    if (block.rescue_context == nullptr || block.rescue_context->armed == 0 || block.console_held)
        return;
    block.rescue.store(false, std::memory_order_relaxed); // read by this CPU's NMIs only
    block.interrupt_depth = 0;
    block.nmi_depth = 0; // this NMI may have come on top of another one: levels.cpp
    block.in_service = 0;
    levels::leave_all();
    if (!xen_pv::is_active()) {
        for (int i = 0; i < 256 && lapic::highest_in_service() != 0; ++i)
            lapic::eoi();
        lapic::write(lapic::Register::TPR, 0); // not by CR8: see paravirt/ipi.hpp
    } else {
        xen_pv::look_again();
    }
    frame.rip = reinterpret_cast<std::uint64_t>(rescue_landing);
    frame.rdi = reinterpret_cast<std::uint64_t>(block.rescue_context);
    frame.rsp = block.rescue_context->rsp;
    frame.rflags = (frame.rflags | kRflagsIF) & ~kRflagsTF;
}

void handle_nmi(TrapFrame& frame) noexcept {
    auto& block = percpu();
    ++block.nmi_depth;
    // Ends a sleep like any other interrupt, and is a reason for it. One instruction, here and below: this NMI may be
    // in the middle of that.
    percpu_add(offsetof(PerCpu, interrupts), 1);
    // In the shadow of STI an NMI may let the waking interrupt in before HLT: then nobody would end that halt.
    if (frame.rip == reinterpret_cast<std::uint64_t>(sti_hlt_at_hlt)) {
        frame.rip += 1; // HLT is one byte
        ++block.nmis_in_shadow;
    }
    take_snapshot(block, frame);
    if (nmi_handler != nullptr)
        nmi_handler(frame);
    --block.nmi_depth;
    if (block.rescue.load(std::memory_order_acquire))
        leave_body(block, frame); // pairs with rescue()'s release
}

/// True for an interrupt that no processor takes: with interrupts off where a trap begins or ends, or before the EOI of
/// the same vector. It is the one before, delivered once more.
bool is_repeated(const PerCpu& block, const TrapFrame& frame, const Slot& slot) noexcept {
    const auto begin = reinterpret_cast<std::uint64_t>(trap_entry_begin);
    const auto end = reinterpret_cast<std::uint64_t>(trap_entry_end);
    if ((frame.rflags & kRflagsIF) == 0 && frame.rip >= begin && frame.rip < end)
        return true;
    return slot.needs_eoi && frame.vector == block.in_service;
}

} // namespace

void rescue(CpuId cpu) noexcept {
    auto& block = percpu_of(cpu);
    block.rescue.store(true, std::memory_order_release); // before the NMI that makes its handler look
    ipi::send_nmi(cpu);
}

/// In the section of the stubs: an interrupt that was repeated before `in_service` is written is known by its RIP.
extern "C" [[gnu::section(".text.trap_entry")]] void trap_dispatch(TrapFrame* frame) noexcept {
    if (frame->vector == kNmi)
        return handle_nmi(*frame);
    if (frame->vector < kFirstInterrupt) {
        if (fix_up(*frame))
            return;
        auto& slot = slots[frame->vector];
        if (slot.handler != nullptr)
            return slot.handler(*frame);
        char text[120];
        TextBuffer reason(text);
        format(reason, "%s, error code 0x%lx at RIP 0x%lx", kNames[frame->vector], frame->error_code, frame->rip);
        die_with_frame(*frame, reason.view());
    }
    auto& block = percpu();
    percpu_add(offsetof(PerCpu, interrupts), 1);
    // A hypervisor that forgets the shadow of STI between an exit and the next entry lets the waking interrupt in
    // before HLT, and the halt would never end. It is counted and reported; the wait goes on as if HLT had ended.
    if (frame->rip == reinterpret_cast<std::uint64_t>(sti_hlt_at_hlt)) {
        frame->rip += 1;
        ++block.lost_shadows;
    }
    if (frame->vector == lapic::kVectorSpurious)
        return; // has no EOI (Intel SDM 3A 11.9)
    const auto slot = slots[frame->vector];
    if (is_repeated(block, *frame, slot)) {
        ++block.repeated_interrupts; // no EOI: there is one request, and who was interrupted here sends it
        return;
    }
    const auto outer = std::exchange(block.in_service, static_cast<std::uint8_t>(frame->vector));
    ++block.interrupt_depth;
    if (slot.handler != nullptr)
        slot.handler(*frame);
    else
        ++block.stray_interrupts;
    block.in_service = outer; // before the EOI, which lets the next one of this vector in
    if (slot.needs_eoi)
        lapic::eoi();
    --block.interrupt_depth;
}

namespace traps {

void init() noexcept {
    for (std::size_t vector = 0; vector < idt.size(); ++vector) {
        const auto address = reinterpret_cast<std::uint64_t>(trap_stubs) + vector * kStubBytes;
        auto ist = descriptors::Ist::none;
        if (vector == kNmi)
            ist = descriptors::Ist::nmi;
        if (vector == kDf)
            ist = descriptors::Ist::double_fault;
        if (vector == kMc)
            ist = descriptors::Ist::machine_check;
        idt[vector] = {static_cast<std::uint16_t>(address),
                       SELECTOR_CODE64,
                       static_cast<std::uint8_t>(ist),
                       kInterruptGate,
                       static_cast<std::uint16_t>(address >> 16),
                       static_cast<std::uint32_t>(address >> 32),
                       0};
    }
}

void load_this_cpu() noexcept {
    if (xen_pv::is_active())
        return xen_pv::load_traps_this_cpu();
    const Pointer pointer{sizeof(idt) - 1, reinterpret_cast<std::uint64_t>(idt.data())};
    asm volatile("lidt %0" ::"m"(pointer) : "memory");
    // Only with CR4.MCE a machine check comes to its gate; without, it is a shutdown without a word. CPUID.1:EDX[7].
    if (((cpuid(1).edx >> 7) & 1) != 0)
        write_cr4(read_cr4() | kCr4MCE);
}

void set_handler(std::uint8_t vector, InterruptHandler handler, bool needs_eoi) noexcept {
    slots[vector] = {handler, needs_eoi};
}
void deliver(std::uint8_t vector, TrapFrame& frame) noexcept {
    const auto slot = slots[vector];
    if (slot.handler != nullptr)
        slot.handler(frame);
    else
        ++percpu().stray_interrupts;
}

void set_nmi_handler(InterruptHandler handler) noexcept { nmi_handler = handler; }

} // namespace traps

std::optional<std::uint64_t> rdmsr_safe(Msr msr) noexcept {
    std::uint64_t low, high;
    std::uint32_t faulted = 1;
    asm volatile("1:\trdmsr\n\t"
                 "xorl %2, %2\n"
                 "2:\n" X86_FIXUP("1b", "2b")
                 : "=a"(low), "=d"(high), "+r"(faulted)
                 : "c"(static_cast<std::uint32_t>(msr))
                 : "memory", "cc");
    if (faulted != 0)
        return std::nullopt;
    return (high << 32) | (low & 0xffffffff);
}

bool wrmsr_safe(Msr msr, std::uint64_t value) noexcept {
    std::uint64_t low = value & 0xffffffff, high = value >> 32;
    std::uint32_t faulted = 1;
    asm volatile("1:\twrmsr\n\t"
                 "xorl %2, %2\n"
                 "2:\n" X86_FIXUP("1b", "2b")
                 : "+a"(low), "+d"(high), "+r"(faulted)
                 : "c"(static_cast<std::uint32_t>(msr))
                 : "memory", "cc");
    return faulted == 0;
}

} // namespace spinkick::x86
