// SPDX-License-Identifier: BSD-2-Clause
//
// The seam between the portable kernel and the machine below it. Everything that kernel/ may ask of a machine is here,
// in clock.hpp and in console.hpp; arch/ implements it, once for machines with rings, IF and a local APIC, and again
// for a Xen PV guest, which has none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/stress/flight_recorder.hpp"
#include "kernel/sync/events.hpp"
#include "kernel/types.hpp"

namespace spinkick::machine {

/// How a run ends; the values go to the exit device (docs/report-format.md).
enum class Exit : std::uint8_t { pass = 0x10, fail = 0x11, error = 0x12, panic = 0x13, skip = 0x14 };

/// Drains the console and ends the machine: exit device, then the hypervisor's or the board's power-off, then a halt.
[[noreturn]] void power_off(Exit exit) noexcept;
/// Prints "PANIC: reason", the backtrace of the caller and the running test, stops the other CPUs and powers off.
[[noreturn]] void die(std::string_view reason) noexcept;

/// CPUs that are online, the boot CPU included.
[[nodiscard]] std::uint32_t cpu_count() noexcept;
/// CPUs that the machine's tables offer and this kernel has room for.
[[nodiscard]] std::uint32_t cpus_found() noexcept;
/// The nth online CPU, n < cpu_count(): an id may be missing in between if a CPU did not come up. The 0th is the boot
/// CPU.
[[nodiscard]] CpuId online_cpu(std::uint32_t n) noexcept;
[[nodiscard]] CpuId this_cpu() noexcept;
/// 48 KiB for what runs on a CPU to record into; whoever uses it first clears it.
[[nodiscard]] std::span<std::byte> scratch_of(CpuId cpu) noexcept;
/// The first 4 KiB of scratch_of(cpu) a second time, at an address of their own: for what maps and unmaps memory in
/// earnest. nullptr: no room for page tables. Whoever maps one for the first time is alone.
[[nodiscard]] std::byte* map_alias(CpuId cpu) noexcept;
/// Takes the second address away again. Only the calling CPU forgets its translation.
void unmap_alias(CpuId cpu) noexcept;
/// The calling CPU forgets the translation of that address.
void flush_alias(CpuId cpu) noexcept;
/// A slow-path counter of one CPU, since boot.
[[nodiscard]] std::uint64_t lock_event(CpuId cpu, sync::LockEvent event) noexcept;
/// Waits of one CPU that slept, by length, since boot: the bucket of sync::BlockedTimes.
[[nodiscard]] std::uint64_t blocked_waits(CpuId cpu, std::size_t bucket) noexcept;
/// The last events that a CPU has recorded.
[[nodiscard]] stress::FlightLog flight_log(CpuId cpu) noexcept;
/// Time that the hypervisor gave to others while this vCPU wanted to run, since boot; 0 where it does not say.
[[nodiscard]] Nanoseconds steal_time(CpuId cpu) noexcept;
/// The hypervisor does say.
[[nodiscard]] bool tells_steal_time(CpuId cpu) noexcept;
/// The hypervisor says that it has stopped this guest since the last call on this CPU (debugger, migration, suspend).
[[nodiscard]] bool take_guest_stopped() noexcept;
/// Kicks that were sent to a CPU and that none of its waits has taken, by how they travel. One sent to a CPU that runs
/// stays until that CPU waits.
struct UntakenKicks {
    std::uint32_t by_ipi = 0, by_hypervisor = 0;
};
[[nodiscard]] UntakenKicks untaken_kicks(CpuId cpu) noexcept;
/// Interrupts the CPU has taken since boot.
[[nodiscard]] std::uint64_t interrupts_taken(CpuId cpu) noexcept;
/// Sends a fixed interrupt; `handler` runs on the target with interrupts masked. One handler at a time for all CPUs.
void set_test_interrupt(void (*handler)() noexcept) noexcept;
void send_test_interrupt(CpuId cpu) noexcept;
/// What runs on a CPU above task context, each level on top of the one before it; for all CPUs alike.
struct LevelHandlers {
    void (*interrupt)() noexcept = nullptr;        ///< interrupts are on in it, so that a higher one may come
    void (*higher_interrupt)() noexcept = nullptr; ///< interrupts are masked
    void (*nmi)() noexcept = nullptr;
    /// By a debug trap after each instruction of `nmi`, until it returns true. nullptr: no debug traps.
    bool (*debug_trap)() noexcept = nullptr;
};
enum class Level : std::uint8_t { interrupt, higher_interrupt, nmi };
/// Takes the place of set_test_interrupt(), which may take its own again.
void set_level_handlers(const LevelHandlers& handlers) noexcept;
/// Interrupts `cpu`, once.
void interrupt_at(CpuId cpu, Level level) noexcept;
/// For an NMI that has not arrived: ends the sleep of a Xen PV vCPU that was about to poll when it was sent. Xen looks
/// for events then and not for NMIs, so that the NMI, and all after it, wait until the poll ends by something else.
void prod(CpuId cpu) noexcept;
/// This CPU's time stamp counter, ordered against the loads and stores around it.
[[nodiscard]] Tsc time_stamp() noexcept;
/// How far another CPU's counter is ahead of the boot CPU's, and how well that is known; false if it was not measured.
struct SkewInfo {
    std::int64_t ticks = 0;
    std::uint64_t error_ticks = 0;
    bool measured = false;
};
[[nodiscard]] SkewInfo skew_of(CpuId cpu) noexcept;
/// One spin hint.
void relax() noexcept;
/// Gives the rest of this vCPU's time to another one, where the hypervisor can (Xen: SCHEDOP_yield); else a spin hint.
/// For waits of the suite itself: on an overcommitted host whoever is waited for may be waiting for this CPU.
void yield() noexcept;
/// Sleeps until an interrupt, with interrupts on; returns with interrupts on. `done` is looked at with interrupts
/// masked, so that an interrupt that makes it true cannot come between the look and the sleep.
void idle_unless(bool (*done)(void*), void* argument) noexcept;
/// Ends the idle_unless() of `cpu`, or its next one if it is about to sleep.
void wake(CpuId cpu) noexcept;
[[nodiscard]] bool interrupts_enabled() noexcept;

/// Runs fn(argument) on `cpu`, in task context with interrupts on, and returns at once. False if that CPU is not idle.
/// `finished` is called on that CPU afterwards with completed=false if the CPU was rescued out of fn.
struct Work {
    void (*fn)(void*) = nullptr;
    void* argument = nullptr;
    void (*finished)(void* argument, bool completed) noexcept = nullptr;
};
[[nodiscard]] bool start_work(CpuId cpu, const Work& work) noexcept;
/// Runs work on the calling CPU; returns when it has ended or was rescued.
void run_here(const Work& work) noexcept;
/// True if `cpu` has no work: what it ran last, and its `finished`, are over.
[[nodiscard]] bool is_idle(CpuId cpu) noexcept;
/// Throws `cpu` out of its work, wherever it is: spinning or halted, with interrupts masked or not.
void rescue(CpuId cpu) noexcept;

/// What a CPU did when it was asked by NMI.
struct CpuState {
    bool answered = false;
    std::uint64_t instruction = 0;
    bool halted = false; ///< the instruction before is a HLT, or a hypercall: nothing else that is called stands still
    bool in_hypercall = false; ///< halted, by the latter
    bool interrupts_on = false;
    std::uint64_t in_service = 0, requested = 0, tpr = 0;
    std::uint32_t event_port = 0;                   ///< of its kicks, where they come by Xen's event channels; else 0
    bool port_pending = false, port_masked = false; ///< before it was asked
};
[[nodiscard]] CpuState inspect(CpuId cpu, Nanoseconds deadline) noexcept;

/// Calls `tick` about every `period` from an interrupt on the calling CPU; nullptr stops it.
void set_tick(void (*tick)() noexcept, Nanoseconds period) noexcept;

} // namespace spinkick::machine
