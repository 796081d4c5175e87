// SPDX-License-Identifier: BSD-2-Clause
//
// One block per CPU, found by the GS base. Counters in it are bumped by one instruction relative to GS, which an
// interrupt of this CPU cannot split; other CPUs only read them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/stress/flight_recorder.hpp"
#include "kernel/sync/blocked_time.hpp"
#include "kernel/sync/events.hpp"
#include "kernel/types.hpp"

namespace spinkick::x86 {

struct RescueContext;

/// What an NMI found on a CPU; written by its own NMI handler, read by whoever asked (the watchdog).
struct CpuSnapshot {
    std::atomic<std::uint64_t> request{0}; ///< counts requests; the handler answers by copying it to `answer`
    std::atomic<std::uint64_t> answer{0};
    std::uint64_t rip = 0;
    std::uint64_t rflags = 0;
    std::uint64_t rsp = 0;
    std::uint64_t rbp = 0;
    std::uint64_t in_service = 0; ///< highest vector in service or 0
    std::uint64_t requested = 0;  ///< highest vector requested or 0
    std::uint64_t tpr = 0;
};

struct alignas(64) PerCpu {
    PerCpu* self = nullptr; ///< first, at GS:0: the address of this block
    CpuId cpu{};
    ApicId apic_id{};
    XenVcpuId xen_vcpu_id{};
    std::uint32_t nmi_depth = 0;             ///< above 0: in NMI context
    std::uint32_t interrupt_depth = 0;       ///< above 0: in an interrupt handler
    bool console_held = false;               ///< this CPU writes a console line: it must not be thrown out now
    std::uint64_t interrupts = 0;            ///< interrupts taken, NMIs too
    std::uint64_t stray_interrupts = 0;      ///< interrupts of a vector without handler
    RescueContext* rescue_context = nullptr; ///< of the test body that runs here, if any
    std::uint64_t nmis_in_shadow = 0;        ///< NMIs that came between STI and HLT; allowed, and stepped over
    std::uint64_t lost_shadows = 0;          ///< interrupts that came there, which no processor lets in
    std::uint64_t repeated_interrupts = 0;   ///< interrupts taken once more before their EOI, as no processor does
    std::uint8_t in_service = 0;             ///< vector of the innermost interrupt that has no EOI yet, or 0
    std::array<std::uint64_t, sync::kLockEvents> events{};
    sync::BlockedTimes blocked{};
    std::uint64_t flight_written = 0;          ///< events that the flight recorder was given
    stress::FlightRing* flight_ring = nullptr; ///< where they go

    /// Kicks that were sent to this CPU and not yet taken by a wait. On a line of its own: others write it.
    alignas(64) std::atomic<std::uint64_t> tokens{0};

    alignas(64) std::atomic<bool> online{false};
    std::atomic<bool> rescue{false}; ///< the next NMI throws this CPU out of its test body
    CpuSnapshot snapshot;

    std::uint64_t stack_low = 0, stack_high = 0; ///< bounds of the main stack, for backtraces
};
static_assert(offsetof(PerCpu, self) == 0, "percpu() reads GS:0");
static_assert(sizeof(PerCpu) <= 4096, "one page holds a block");

[[nodiscard]] inline PerCpu& percpu() noexcept {
    PerCpu* block;
    asm("movq %%gs:0, %0" : "=r"(block));
    return *block;
}

/// The CPU that runs the caller; one instruction.
[[nodiscard]] inline CpuId this_cpu() noexcept {
    std::uint32_t cpu;
    asm volatile("movl %%gs:%c1, %0" : "=r"(cpu) : "i"(offsetof(PerCpu, cpu)));
    return CpuId{cpu};
}

/// Adds to a counter of this CPU's block, uninterruptibly.
inline void percpu_add(std::size_t offset, std::uint64_t amount) noexcept {
    asm volatile("addq %1, %%gs:(%0)" ::"r"(offset), "re"(amount) : "memory", "cc");
}

/// The same; returns what was there before.
inline std::uint64_t percpu_fetch_add(std::size_t offset, std::uint64_t amount) noexcept {
    asm volatile("xaddq %0, %%gs:(%1)" : "+r"(amount) : "r"(offset) : "memory", "cc");
    return amount;
}

inline void count(sync::LockEvent event, std::uint64_t amount) noexcept {
    percpu_add(offsetof(PerCpu, events) + static_cast<std::size_t>(event) * sizeof(std::uint64_t), amount);
}

inline void count_blocked(Tsc length) noexcept {
    percpu_add(offsetof(PerCpu, blocked) + sync::BlockedTimes::bucket_of(length.value) * sizeof(std::uint64_t), 1);
}

/// The block of any CPU that was found, online or not.
[[nodiscard]] PerCpu& percpu_of(CpuId cpu) noexcept;

} // namespace spinkick::x86
