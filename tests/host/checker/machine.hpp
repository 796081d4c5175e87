// SPDX-License-Identifier: BSD-2-Clause
//
// The machine that the checker gives to the lock headers: every atomic access, kick and sleep is handed to a simulation
// that decides when it happens and what it sees (simulation.hpp). The locks are the real ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "kernel/sync/concepts.hpp"
#include "kernel/types.hpp"

namespace spinkick::checker {

enum class OpKind : std::uint8_t {
    load,
    store,
    exchange,
    compare_exchange,
    fetch_add,
    fetch_sub,
    fetch_or,
    fetch_and,
    kick,   ///< operand: the target
    arm,    ///< the wake channel, before done() is called
    halt,   ///< sleeps until kicked
    finish, ///< the CPU has done all its rounds
    doze,   ///< on a machine that forgets kicks: has looked, and does not sleep yet
};

/// What a CPU is about to do. It lives on the stack of the CPU, so that it is saved and restored with it.
struct Op {
    OpKind kind;
    std::uint8_t size;
    std::memory_order order;
    std::memory_order failure; ///< of a compare_exchange that does not match
    std::uintptr_t address;
    std::uint64_t operand;
    std::uint64_t expected;
    std::uint64_t result; ///< the value found
};

/// Hands the operation to the simulation and returns when it has been done; result holds what was found.
void perform(Op& op) noexcept;

// What the machine below asks of the simulation, none of it a scheduling point.
[[nodiscard]] std::uint32_t current_cpu() noexcept;
void spin_hint() noexcept;
void count_event(sync::LockEvent event, std::uint64_t n) noexcept;
/// True if a wait clears what an earlier kick has left (an event channel), false if it finds it (a halt under KVM).
[[nodiscard]] bool wait_arms() noexcept;
/// True if there is a moment between the look and the sleep in which a kick is lost: a machine that breaks its promise.
[[nodiscard]] bool wait_dozes() noexcept;
void mask_interrupts(bool on) noexcept;

/// Has the size of its value and is identified by address, as lock_word.hpp demands.
template <class T>
class Atomic {
  public:
    constexpr Atomic() noexcept : value_{} {}
    constexpr Atomic(T value) noexcept : value_{value} {} // NOLINT: as std::atomic
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    [[nodiscard]] T load(std::memory_order order) const noexcept { return run(OpKind::load, 0, order); }
    void store(T value, std::memory_order order) noexcept { run(OpKind::store, to_bits(value), order); }
    T exchange(T value, std::memory_order order) noexcept { return run(OpKind::exchange, to_bits(value), order); }
    T fetch_add(T value, std::memory_order order) noexcept { return run(OpKind::fetch_add, to_bits(value), order); }
    T fetch_sub(T value, std::memory_order order) noexcept { return run(OpKind::fetch_sub, to_bits(value), order); }
    T fetch_or(T value, std::memory_order order) noexcept { return run(OpKind::fetch_or, to_bits(value), order); }
    T fetch_and(T value, std::memory_order order) noexcept { return run(OpKind::fetch_and, to_bits(value), order); }

    bool compare_exchange_strong(T& expected, T desired, std::memory_order order, std::memory_order failure) noexcept {
        Op op = make(OpKind::compare_exchange, to_bits(desired), order);
        op.failure = failure;
        op.expected = to_bits(expected);
        perform(op);
        if (op.result == op.expected)
            return true;
        expected = from_bits(op.result);
        return false;
    }
    bool compare_exchange_strong(T& expected, T desired, std::memory_order order) noexcept {
        return compare_exchange_strong(expected, desired, order, failure_of(order));
    }

    /// For mutated headers: if `torn`, a compare and exchange that is not one.
    bool compare_exchange_torn_if(bool torn, T& expected, T desired, std::memory_order order) noexcept {
        return compare_exchange_torn_if(torn, expected, desired, order, failure_of(order));
    }
    bool compare_exchange_torn_if(bool torn, T& expected, T desired, std::memory_order order,
                                  std::memory_order failure) noexcept {
        if (!torn)
            return compare_exchange_strong(expected, desired, order, failure);
        const T seen = load(order == std::memory_order_relaxed ? order : std::memory_order_acquire);
        const bool equal = seen == expected;
        if (equal)
            store(desired, order == std::memory_order_relaxed ? order : std::memory_order_release);
        else
            expected = seen;
        return equal;
    }

  private:
    /// As std::atomic derives it where one order is given.
    [[nodiscard]] static std::memory_order failure_of(std::memory_order order) noexcept {
        return order == std::memory_order_acq_rel   ? std::memory_order_acquire
               : order == std::memory_order_release ? std::memory_order_relaxed
                                                    : order;
    }
    [[nodiscard]] static std::uint64_t to_bits(T value) noexcept {
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<std::uint64_t>(value);
        else
            return std::uint64_t{value};
    }
    [[nodiscard]] static T from_bits(std::uint64_t bits) noexcept {
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<T>(bits);
        else
            return static_cast<T>(bits);
    }
    [[nodiscard]] Op make(OpKind kind, std::uint64_t operand, std::memory_order order) const noexcept {
        return {kind, sizeof(T), order, order, reinterpret_cast<std::uintptr_t>(&value_), operand, 0, 0};
    }
    T run(OpKind kind, std::uint64_t operand, std::memory_order order) const noexcept {
        Op op = make(kind, operand, order);
        perform(op);
        return from_bits(op.result);
    }

    T value_;
};

/// Spins only.
class SpinningChecker {
  public:
    template <class T>
    using Atomic = checker::Atomic<T>;
    static constexpr std::uint32_t kMaxCpus = 8;
    static constexpr const char* kName = "checker-spinning";
    struct InterruptState {};

    static CpuId this_cpu() noexcept { return CpuId{current_cpu()}; }
    static bool in_nmi() noexcept { return false; }
    static void relax() noexcept { spin_hint(); }
    static void count(sync::LockEvent event, std::uint64_t n) noexcept { count_event(event, n); }
    static InterruptState disable_interrupts() noexcept { return {}; }
    static void restore_interrupts(InterruptState) noexcept {}
};

/// Sleeps and kicks as well. A kick may overtake what its sender has in its store buffer: the concept leaves the
/// barrier to the lock. Kick tokens are not counted here, since their locked instruction would be such a barrier.
class SleepingChecker : public SpinningChecker {
  public:
    static constexpr const char* kName = "checker";

    template <class Done>
    static void wait_unless(Done done) noexcept {
        mask_interrupts(true);
        if (wait_arms())
            signal(OpKind::arm, 0);
        if (!done()) {
            if (wait_dozes())
                signal(OpKind::doze, 0);
            signal(OpKind::halt, 0);
        }
        mask_interrupts(false);
    }
    static void kick(CpuId cpu) noexcept { signal(OpKind::kick, raw(cpu)); }
    static bool is_preempted(CpuId) noexcept { return false; }
    static void yield_to(CpuId) noexcept {}
    static Tsc now() noexcept { return Tsc{1}; } // a clock that moved would make every state a new one

  private:
    static void signal(OpKind kind, std::uint64_t operand) noexcept {
        Op op{kind, 0, std::memory_order_relaxed, std::memory_order_relaxed, 0, operand, 0, 0};
        perform(op);
    }
};

} // namespace spinkick::checker
