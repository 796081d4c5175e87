// SPDX-License-Identifier: BSD-2-Clause
//
// A machine made of host threads, for the lock headers of kernel/sync: a CPU is a thread, sleeping is a futex, an
// interrupt is a function that the thread calls at its next spin hint or when its sleep ends. ThreadSanitizer watches
// it, and it can do on demand what a real machine does once a week: nest five waits, be in an NMI, have a preempted
// predecessor.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "arch/x86/insn.hpp"
#include "kernel/sync/concepts.hpp"
#include "kernel/sync/kick_tokens.hpp"
#include "kernel/types.hpp"

namespace spinkick::host {

/// What this thread is, and what its machine state looks like.
struct ThreadCpu {
    CpuId id{0};
    bool interrupts_on = true;
    bool in_nmi = false;
    unsigned spins = 0;
    /// Runs at the next chance, once for each Threads::interrupt(); may wait on locks and be interrupted itself.
    void (*handler)(void* context) = nullptr;
    void* context = nullptr;
};
inline thread_local ThreadCpu this_thread_cpu;

/// What others may touch of a CPU.
struct alignas(64) SharedCpuState {
    std::array<std::atomic<std::uint64_t>, sync::kLockEvents> events{};
    std::atomic<std::uint32_t> interrupts{0};
    std::atomic<std::uint32_t> signalled{0}; ///< futex word: 1 if this CPU has been kicked and has not noticed yet
    std::atomic<bool> preempted{false};
    std::atomic<bool> asleep{false}; ///< in the futex call, or about to be
};

struct EventCounts {
    std::array<std::uint64_t, sync::kLockEvents> values{};

    [[nodiscard]] std::uint64_t operator[](sync::LockEvent event) const {
        return values[static_cast<std::size_t>(event)];
    }
};

/// Spins only: the LockMachine half.
class SpinningThreads {
  public:
    template <class T>
    using Atomic = std::atomic<T>;
    static constexpr std::uint32_t kMaxCpus = 256;
    static constexpr const char* kName = "threads-spinning";

    struct InterruptState {
        bool on;
    };

    static CpuId this_cpu() noexcept { return this_thread_cpu.id; }
    static bool in_nmi() noexcept { return this_thread_cpu.in_nmi; }

    static void relax() noexcept {
        deliver_interrupts();
        __builtin_ia32_pause();
        // With more threads than CPUs a FIFO lock would otherwise pay a scheduler tick for each hand-over.
        if (++this_thread_cpu.spins % 32 == 0)
            std::this_thread::yield();
    }

    static void count(sync::LockEvent event, std::uint64_t n) noexcept {
        cpus_[index(this_cpu())].events[static_cast<std::size_t>(event)].fetch_add(n, std::memory_order_relaxed);
    }

    static InterruptState disable_interrupts() noexcept {
        const InterruptState before{this_thread_cpu.interrupts_on};
        this_thread_cpu.interrupts_on = false;
        return before;
    }
    static void restore_interrupts(InterruptState state) noexcept {
        this_thread_cpu.interrupts_on = state.on;
        deliver_interrupts();
    }

#if !defined(__SANITIZE_THREAD__)
    // One instruction, as on the machine. ThreadSanitizer does not see into assembly and gets the load and the store.
    static void add_by_owner(std::atomic<std::uint16_t>& word, std::uint16_t amount) noexcept {
        x86::add(word, amount);
    }
#endif

    // The tests' side of the machine.

    /// All CPUs together since the process began.
    static EventCounts events() {
        EventCounts sum;
        for (auto& cpu : cpus_)
            for (std::size_t e = 0; e < sync::kLockEvents; ++e)
                sum.values[e] += cpu.events[e].load(std::memory_order_relaxed);
        return sum;
    }
    static EventCounts events(CpuId cpu) {
        EventCounts one;
        for (std::size_t e = 0; e < sync::kLockEvents; ++e)
            one.values[e] = cpus_[index(cpu)].events[e].load(std::memory_order_relaxed);
        return one;
    }

    static std::uint64_t event(CpuId cpu, sync::LockEvent event) noexcept {
        return cpus_[index(cpu)].events[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
    }

  protected:
    /// True if a handler ran.
    static bool deliver_interrupts() noexcept {
        ThreadCpu& self = this_thread_cpu;
        if (!self.interrupts_on || self.handler == nullptr)
            return false;
        auto& pending = cpus_[index(self.id)].interrupts;
        if (pending.load(std::memory_order_relaxed) == 0)
            return false;
        pending.fetch_sub(1, std::memory_order_acquire); // only this thread takes any away
        self.handler(self.context);
        return true;
    }

    inline static constinit std::array<SharedCpuState, kMaxCpus> cpus_{};
};

/// Sleeps and kicks as well.
class Threads : public SpinningThreads {
  public:
    static constexpr const char* kName = "threads";

    using Tokens = sync::KickTokens<Threads>;

    // The futex word stays 1 from a kick until the end of a wait, so a kick after done() has looked ends this wait
    // whether it sleeps yet or not. No interrupt is delivered between done() and the sleep, and one that arrives then
    // ends the sleep, because interrupt() signals too: a handler's wait cannot use up what the wait below it needs.
    template <class Done>
    static sync::WaitEnd wait_unless(Done done) noexcept {
        SharedCpuState& self = cpus_[index(this_cpu())];
        auto end = sync::WaitEnd::not_slept;
        if (!done() && !in_nmi()) {
            self.asleep.store(true, std::memory_order_relaxed);
            const bool slept = futex(self.signalled, FUTEX_WAIT_PRIVATE, 0) == 0;
            self.asleep.store(false, std::memory_order_relaxed);
            if (slept)
                end = self.interrupts.load(std::memory_order_relaxed) != 0 ? sync::WaitEnd::interrupted
                                                                           : sync::WaitEnd::slept;
            // The caller looks again after this, so nothing is lost with what is consumed here. acquire: what it looks
            // at.
            self.signalled.exchange(0, std::memory_order_acquire);
        }
        Tokens::wait_returned(end);
        deliver_interrupts();
        return end;
    }

    static void kick(CpuId cpu) noexcept {
        Tokens::kick(cpu, [cpu]() noexcept { signal(cpu); });
    }

    static bool is_preempted(CpuId cpu) noexcept { return cpus_[index(cpu)].preempted.load(std::memory_order_relaxed); }
    static void yield_to(CpuId) noexcept { std::this_thread::yield(); }
    static Tsc now() noexcept { return Tsc{__builtin_ia32_rdtsc()}; }

    // The tests' side of the machine.

    static void set_preempted(CpuId cpu, bool preempted) {
        cpus_[index(cpu)].preempted.store(preempted, std::memory_order_relaxed);
    }

    static bool is_asleep(CpuId cpu) { return cpus_[index(cpu)].asleep.load(std::memory_order_relaxed); }

    /// Makes `cpu` call its handler once, soon; ends its sleep.
    static void interrupt(CpuId cpu) {
        cpus_[index(cpu)].interrupts.fetch_add(1, std::memory_order_release);
        signal(cpu);
    }

    /// Wakes a CPU that a lost kick has left asleep. No token, no interrupt.
    static void rescue(CpuId cpu) { signal(cpu); }

  private:
    static void signal(CpuId cpu) noexcept {
        auto& word = cpus_[index(cpu)].signalled;
        if (word.exchange(1, std::memory_order_release) == 0)
            futex(word, FUTEX_WAKE_PRIVATE, 1);
    }

    static long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
        return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
    }
};

} // namespace spinkick::host
