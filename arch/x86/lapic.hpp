// SPDX-License-Identifier: BSD-2-Clause
//
// The local APIC in both modes (Intel SDM 3A chapter 11; AMD APM 2 chapter 16). x2APIC is used where CPUID offers it:
// ids above 254 are reachable by nothing else, and under KVM an MSR write is the cheaper exit.
#pragma once

#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::x86::lapic {

/// Offsets of the xAPIC page; x2APIC MSR = 0x800 + offset / 16.
enum class Register : std::uint32_t {
    ID = 0x20,
    VERSION = 0x30,
    TPR = 0x80,
    EOI = 0xb0,
    SVR = 0xf0,
    ISR = 0x100, ///< eight registers, 0x10 apart
    IRR = 0x200, ///< eight registers, 0x10 apart
    ESR = 0x280,
    ICR_LOW = 0x300,
    ICR_HIGH = 0x310,
    LVT_TIMER = 0x320,
    LVT_LINT0 = 0x350,
    LVT_LINT1 = 0x360,
    TIMER_INITIAL = 0x380,
    TIMER_CURRENT = 0x390,
    TIMER_DIVIDE = 0x3e0,
};

/// ICR bits 10:8 (and 14 for INIT). REMRD is "remote read", which KVM uses internally for its kick: a guest that writes
/// it to the ICR reaches the same code.
enum class Delivery : std::uint32_t {
    fixed = 0x000,
    remote_read = 0x300,
    nmi = 0x400,
    init = 0x4500, ///< INIT, level assert
    startup = 0x600,
};

/// Vectors. The class (bits 7:4) is the priority: the kick has the highest, so that a waiter that raised TPR to 0xe0
/// lets in nothing else.
inline constexpr std::uint8_t kVectorTimer = 0xd0;
inline constexpr std::uint8_t kVectorCall = 0xd1;
inline constexpr std::uint8_t kVectorTestLow = 0x40; ///< for tests: an ordinary device-like interrupt
inline constexpr std::uint8_t kVectorTestHigh = 0xc0;
inline constexpr std::uint8_t kVectorXenUpcall = 0xe0;     ///< without EOI: it comes past the local APIC
inline constexpr std::uint8_t kVectorXenVcpuUpcall = 0xe1; ///< with EOI
inline constexpr std::uint8_t kVectorKick = 0xf1;
inline constexpr std::uint8_t kVectorSpurious = 0xff;

/// Finds the mode and maps the page (xAPIC). Boot CPU, once.
[[nodiscard]] bool init(std::uint64_t physical_base) noexcept;
/// Silences the two 8259s, whose vectors a BIOS leaves among the exceptions: IRQ 0 is vector 8, and an interrupt has no
/// error code. The mask of LINT0 is not enough: Xen's HVM firmware also routes them through the IOAPIC. Where there are
/// none nothing happens.
void mask_8259s() noexcept;
/// Enables the APIC of this CPU: SVR, LINTs masked, timer stopped, TPR 0.
void enable_this_cpu() noexcept;

[[nodiscard]] bool is_x2apic() noexcept;
[[nodiscard]] ApicId this_id() noexcept;

/// Writes the ICR. `vector` is ignored by the deliveries that have none. Never waits for ever: xAPIC's delivery-status
/// bit is polled a bounded number of times before the write.
void send(ApicId target, Delivery delivery, std::uint8_t vector) noexcept;
void eoi() noexcept;

[[nodiscard]] std::uint32_t read(Register reg, std::uint32_t index = 0) noexcept;
void write(Register reg, std::uint32_t value) noexcept;

/// Measures the timer against the kernel clock; boot CPU, once, after the clock runs.
/// False if it does not count: without a tick nobody watches.
[[nodiscard]] bool calibrate_timer() noexcept;
/// Timer interrupt kVectorTimer every `period`, on this CPU; {0} stops it.
void set_periodic_timer(Nanoseconds period) noexcept;
/// One timer interrupt after `delay`, on this CPU.
void set_oneshot_timer(Nanoseconds delay) noexcept;

/// Highest vector in service / requested on this CPU, 0 for none.
[[nodiscard]] std::uint32_t highest_in_service() noexcept;
[[nodiscard]] std::uint32_t highest_requested() noexcept;

} // namespace spinkick::x86::lapic
