// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/lapic.hpp"

#include <algorithm>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/percpu.hpp"
#include "kernel/clock.hpp"
#include "kernel/log.hpp"

namespace spinkick::x86::lapic {
namespace {

constexpr std::uint64_t kBaseEnable = 1u << 11, kBaseX2apic = 1u << 10; // IA32_APIC_BASE
constexpr std::uint32_t kSvrEnable = 1u << 8;
constexpr std::uint32_t kLvtMasked = 1u << 16;
constexpr std::uint32_t kLvtPeriodic = 1u << 17;
constexpr std::uint32_t kIcrPending = 1u << 12;
constexpr std::uint32_t kDivideBy16 = 3;
constexpr std::uint32_t kIcrPollBound = 1'000'000;

constinit volatile std::uint32_t* page = nullptr; // xAPIC; nullptr in x2APIC mode
constinit std::uint64_t timer_ticks_per_ms = 0;

std::uint32_t highest(Register first) noexcept {
    for (std::uint32_t i = 8; i-- > 0;) {
        const auto word = read(first, i);
        if (word != 0)
            return i * 32 + (31 - static_cast<std::uint32_t>(__builtin_clz(word)));
    }
    return 0;
}

void start_timer(Nanoseconds period, std::uint32_t mode) noexcept {
    const auto ticks = period.value * timer_ticks_per_ms / 1'000'000;
    if (ticks == 0) {
        write(Register::LVT_TIMER, kLvtMasked | kVectorTimer);
        write(Register::TIMER_INITIAL, 0);
        return;
    }
    write(Register::TIMER_DIVIDE, kDivideBy16);
    write(Register::LVT_TIMER, mode | kVectorTimer);
    write(Register::TIMER_INITIAL, ticks > 0xffffffff ? 0xffffffff : static_cast<std::uint32_t>(ticks));
}

} // namespace

bool init(std::uint64_t physical_base) noexcept {
    if (has_x2apic()) {
        page = nullptr;
        return true;
    }
    page = static_cast<volatile std::uint32_t*>(
        paging::map_physical(physical_base, paging::kPageBytes, paging::Cache::uncached));
    return page != nullptr;
}

void mask_8259s() noexcept {
    constexpr std::uint16_t kMaster = 0x21, kSlave = 0xa1; // their interrupt mask registers
    outb(kSlave, 0xff);
    outb(kMaster, 0xff);
}

bool is_x2apic() noexcept { return page == nullptr; }

void enable_this_cpu() noexcept {
    const auto base = rdmsr(Msr::IA32_APIC_BASE);
    // From "off" the manual allows x2APIC only by way of xAPIC (Intel SDM 3A 11.12.5).
    if ((base & kBaseEnable) == 0)
        wrmsr(Msr::IA32_APIC_BASE, base | kBaseEnable);
    if (is_x2apic() && (base & kBaseX2apic) == 0)
        wrmsr(Msr::IA32_APIC_BASE, base | kBaseEnable | kBaseX2apic);
    write(Register::LVT_TIMER, kLvtMasked | kVectorTimer);
    write(Register::LVT_LINT0, kLvtMasked);
    write(Register::LVT_LINT1, static_cast<std::uint32_t>(Delivery::nmi)); // the machine's NMI line
    write(Register::TPR, 0);
    write(Register::SVR, kSvrEnable | kVectorSpurious);
}

ApicId this_id() noexcept {
    const auto id = read(Register::ID);
    return ApicId{is_x2apic() ? id : id >> 24};
}

void send(ApicId target, Delivery delivery, std::uint8_t vector) noexcept {
    const auto low = static_cast<std::uint32_t>(delivery) | vector;
    if (is_x2apic()) {
        store_barrier(); // this WRMSR does not wait for earlier stores (Intel SDM 3A 11.12.3)
        wrmsr(Msr::IA32_X2APIC_ICR, (std::uint64_t{raw(target)} << 32) | low);
        return;
    }
    // Two registers, and an interrupt between them may send an IPI of its own: the target would be overwritten.
    const bool enabled = (rflags() & kRflagsIF) != 0;
    cli();
    for (std::uint32_t i = 0; (read(Register::ICR_LOW) & kIcrPending) != 0 && i < kIcrPollBound; ++i)
        pause();
    write(Register::ICR_HIGH, raw(target) << 24);
    write(Register::ICR_LOW, low);
    if (enabled)
        sti();
}

void eoi() noexcept { write(Register::EOI, 0); }

std::uint32_t read(Register reg, std::uint32_t i) noexcept {
    const auto offset = static_cast<std::uint32_t>(reg) + i * 0x10;
    if (is_x2apic())
        return static_cast<std::uint32_t>(rdmsr(Msr{static_cast<std::uint32_t>(Msr::IA32_X2APIC_BASE) + offset / 16}));
    return mmio_read32(page + offset / 4);
}

void write(Register reg, std::uint32_t value) noexcept {
    const auto offset = static_cast<std::uint32_t>(reg);
    if (is_x2apic())
        wrmsr(Msr{static_cast<std::uint32_t>(Msr::IA32_X2APIC_BASE) + offset / 16}, value);
    else
        mmio_write32(page + offset / 4, value);
}

bool calibrate_timer() noexcept {
    constexpr std::uint32_t kFull = 0xffffffff;
    constexpr unsigned kSamples = 4;
    write(Register::TIMER_DIVIDE, kDivideBy16);
    write(Register::LVT_TIMER, kLvtMasked | kVectorTimer);
    // A pause between a look at the clock and one at the counter makes a sample too slow, never too fast: the fastest
    // counts.
    for (unsigned i = 0; i < kSamples; ++i) {
        const auto begin = clock::now();
        write(Register::TIMER_INITIAL, kFull);
        while (clock::now() < begin + microseconds(300))
            pause();
        const auto left = read(Register::TIMER_CURRENT);
        const auto elapsed = clock::now() - begin;
        timer_ticks_per_ms = std::max(timer_ticks_per_ms, std::uint64_t{kFull - left} * 1'000'000 / elapsed.value);
    }
    write(Register::TIMER_INITIAL, 0);
    if (timer_ticks_per_ms == 0)
        log("lapic: the timer does not count, and nobody could watch the tests");
    return timer_ticks_per_ms != 0;
}

void set_periodic_timer(Nanoseconds period) noexcept { start_timer(period, kLvtPeriodic); }
void set_oneshot_timer(Nanoseconds delay) noexcept { start_timer(delay, 0); }

std::uint32_t highest_in_service() noexcept { return highest(Register::ISR); }
std::uint32_t highest_requested() noexcept { return highest(Register::IRR); }

} // namespace spinkick::x86::lapic
