// SPDX-License-Identifier: BSD-2-Clause
//
// What a lock may ask of the machine below it, and what a machine must promise a lock.
//
// A lock is a template over a back end. The same header runs on this kernel (native, ipi, kvm, xen), on host threads
// (ThreadSanitizer, benchmarks) and under a checker that explores schedules; so everything that differs between them,
// down to the atomics, comes from the back end. Back ends are types with static members: no function pointers, no
// virtual calls, nothing patched at run time.
#pragma once

#include <concepts>
#include <cstdint>

#include "kernel/sync/events.hpp"
#include "kernel/types.hpp"

namespace spinkick::sync {

/// The services that every lock needs.
///
///  Atomic<T>             std::atomic's load, store, exchange, compare_exchange_strong, fetch_add, fetch_or, fetch_and,
///                        fetch_sub, for unsigned T of 1, 2, 4 or 8 bytes and for pointers; a memory order is always
///                        given. There is no fence: a full barrier is a seq_cst exchange.
///  kMaxCpus              bound of this_cpu(); sizes the per-CPU node arrays.
///  this_cpu()            the CPU that runs the caller. Stable while the caller holds or queues for a lock.
///  in_nmi()              true in NMI context, where nobody may sleep.
///  relax()               one spin hint: PAUSE, or what Tuning::relax_hint says.
///  count(event, n)       adds n to this CPU's counter; never a shared cache line; exact in spite of interrupts.
///  disable_interrupts()  masks interrupts, returns the mask as it was; restore_interrupts(state) puts it back.
///
/// Optional: add_by_owner(Atomic<std::uint16_t>&, std::uint16_t), see lock_word.hpp.
//
// clang-format off
template <class B>
concept LockMachine = requires(LockEvent event, std::uint64_t n, typename B::InterruptState state) {
    typename B::template Atomic<std::uint32_t>;
    { B::kMaxCpus } -> std::convertible_to<std::uint32_t>;
    { B::this_cpu() } noexcept -> std::same_as<CpuId>;
    { B::in_nmi() } noexcept -> std::same_as<bool>;
    { B::relax() } noexcept -> std::same_as<void>;
    { B::count(event, n) } noexcept -> std::same_as<void>;
    { B::disable_interrupts() } noexcept -> std::same_as<typename B::InterruptState>;
    { B::restore_interrupts(state) } noexcept -> std::same_as<void>;
};
// clang-format on

/// Stands for the caller's condition where the concept below needs one.
struct DoneProbe {
    bool operator()() const noexcept { return true; }
};

/// How a wait came back, as its back end saw it.
enum class WaitEnd : std::uint8_t {
    not_slept,   ///< done() was true, or the wake channel had been signalled before
    slept,       ///< the vCPU was put to sleep and no interrupt is known to have ended it
    interrupted, ///< the vCPU was put to sleep and an interrupt that is not a kick was taken before it returned
};

/// wait_unless() may say how it came back, or keep it to itself.
template <class T>
concept WaitResult = std::same_as<T, void> || std::same_as<T, WaitEnd>;

/// A machine that can also put a vCPU to sleep and wake it.
///
///  wait_unless(done)   arms this CPU's wake channel, calls done() exactly once, sleeps only if that was false. May
///                      return early or spuriously: the caller looks again. Leaves the interrupt mask as found. Never
///                      sleeps in NMI context. Never sleeps past a kick that was sent after done() read its last word.
///  kick(cpu)           ends the wait of `cpu`: the current one, or the next one if it is about to sleep. Harmless if
///                      the target runs. The caller has published what done() reads, with a full barrier, before.
///  is_preempted(cpu)   the hypervisor says that this vCPU is runnable but does not run. False where it does not say.
///  yield_to(cpu)       a hint: give this vCPU's time to `cpu`.
///  now()               time stamp for the latency counters, in TSC ticks.
///
/// Optional, for directed_yield.hpp: kTellsPreemption, false if is_preempted() never says true; can_yield(), false if
/// the hypervisor does not offer it; cpu_bound(), a number above that of every CPU there is.
///
/// Optional: record(FlightEvent, std::uint32_t), into this CPU's flight recorder (flight_events.hpp).
///
/// Optional: record_blocked(Tsc), with a wait_unless() that returns a WaitEnd. Gets the length of every wait that
/// slept, from the last look before it until the CPU runs again; keeps it per CPU, exact in spite of interrupts.
///
/// Waits nest: an interrupt handler may wait on a lock of its own while the code under it is anywhere in wait_unless().
/// A kick meant for the outer wait must not be used up by the inner one: either no handler runs between done() and the
/// sleep and each one that runs afterwards ends the sleep, or the outer wait returns without sleeping.
//
// clang-format off
template <class B>
concept ParavirtBackend = LockMachine<B> && requires(CpuId cpu, DoneProbe done) {
    { B::wait_unless(done) } noexcept -> WaitResult;
    { B::kick(cpu) } noexcept -> std::same_as<void>;
    { B::is_preempted(cpu) } noexcept -> std::same_as<bool>;
    { B::yield_to(cpu) } noexcept -> std::same_as<void>;
    { B::now() } noexcept -> std::same_as<Tsc>;
};
// clang-format on

/// What every lock offers. lock() returns when the caller holds the lock; try_lock() returns true if it took the lock
/// without waiting; unlock() is called by the holder, on the CPU that took it. None of them touches the interrupt mask
/// for longer than the call. A lock is constant-initialised, starts free, is never copied, and has 128 bytes at most.
///
/// A CPU may hold any number of locks, releases them in any order, and may wait for five at once: in a task, an
/// interrupt, a higher one, an NMI and a debug trap. After the store that releases it unlock() touches the lock no
/// more: it may be freed by then.
///
/// word() is the raw state, for a dump. If kIsFifo, each arrival shows in its bits 31:8; lock.fifo waits for that.
///
/// Optional: kHasNodes, true if each CPU has four queue nodes and lock_use_node2 to 4 and lock_no_node are counted;
/// at_rest(), static, true if no node, slot or table entry is in use. Leaks are looked for only where these are.
///
/// Optional, for stall dumps: kWord, how word() is to be read; waiter(CpuId), static, where a CPU stands in the queue
/// (lock_view.hpp).
///
/// Machine is the back end. reset_cpu() forgets what locks of this type remember about a CPU between their calls (queue
/// nodes, waiting slots): for a CPU that a watchdog threw out of lock(). The locks that it waited for are lost then and
/// must not be used again; every other lock of the type goes on.
//
// clang-format off
template <class L>
concept Lock = std::default_initializable<L> && !std::copyable<L> && requires(L lock, const L& seen, CpuId cpu) {
    requires LockMachine<typename L::Machine>;
    { lock.lock() } noexcept -> std::same_as<void>;
    { lock.try_lock() } noexcept -> std::same_as<bool>;
    { lock.unlock() } noexcept -> std::same_as<void>;
    { L::kName } -> std::convertible_to<const char*>;
    { L::kIsFifo } -> std::convertible_to<bool>; // fairness verdicts apply only where this is true
    { L::kExcludes } -> std::convertible_to<bool>; // false for null and broken
    { L::kSleeps } -> std::convertible_to<bool>; // has a slow path that halts
    { seen.word() } noexcept -> std::convertible_to<std::uint64_t>;
    { L::reset_cpu(cpu) } noexcept -> std::same_as<void>;
};
// clang-format on

} // namespace spinkick::sync
