// SPDX-License-Identifier: BSD-2-Clause
//
// How a test body becomes one test per lock and back end, and how workers contend. One body serves every lock: a new
// lock is in every test by being in kernel/sync/locks.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "arch/x86/paravirt/backends.hpp"
#include "arch/x86/paravirt/paravirt.hpp"
#include "kernel/clock.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/lock_text.hpp"
#include "kernel/stress/traced_lock.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/locks.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::lock_tests {

using Locks = paravirt::KernelLocks;

/// Workers of a contention test. FIFO locks hand over in turn, so each handoff to a vCPU that does not run costs a time
/// slice of the host: with hundreds of waiters on two CPUs one round takes minutes and shows nothing that eight do not.
inline constexpr std::uint32_t kMostWorkers = 8;

[[nodiscard]] inline std::uint32_t worker_count(std::uint32_t first = 0) noexcept {
    const auto available = workers::available(first);
    return available < kMostWorkers ? available : kMostWorkers;
}

/// A table with an entry for each lock of a list, such as a test's: maker.operator()<L>() gives that of one lock.
template <class Maker, class... Ls>
consteval auto table_of(Maker maker, sync::TypeList<Ls...>) noexcept {
    return std::array{maker.template operator()<Ls>()...};
}

/// The locks of a list that a predicate accepts.
template <template <class> class Accepts, class List>
struct Filter;
template <template <class> class Accepts, class... Ls>
struct Filter<Accepts, sync::TypeList<Ls...>>
    : sync::ConcatLists<std::conditional_t<Accepts<Ls>::value, sync::TypeList<Ls>, sync::TypeList<>>...> {};

template <class L>
struct Excludes : std::bool_constant<L::kExcludes> {};
template <class L>
struct Sleeps : std::bool_constant<L::kSleeps> {};

using ExcludingLocks = typename Filter<Excludes, Locks>::type;
using SleepingLocks = typename Filter<Sleeps, Locks>::type;

/// The lock under test of one type, traced, so that a stall can be explained. One object serves all tests of that lock:
/// none of them leaves it held, and a rescue resets it.
template <class L>
inline constinit stress::Traced<L> lock_under_test{};

/// Forgets what the lock type and its back end remember about a CPU that was thrown out of them.
template <class L>
void reset_cpu(CpuId cpu) noexcept {
    stress::Traced<L>::reset_cpu(cpu);
    if constexpr (requires { L::Machine::reset_cpu(cpu); })
        L::Machine::reset_cpu(cpu);
}

/// Makes the lock free again after a rescue, whatever the stuck CPUs did to it.
template <class L, auto& kObject = lock_under_test<L>>
void reset_lock() noexcept {
    std::destroy_at(&kObject);
    std::construct_at(&kObject);
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        reset_cpu<L>(machine::online_cpu(n));
}

/// The last line of a stall dump.
template <auto& kObject>
void describe_lock(void*) noexcept {
    stress::log_lock(&kObject, stress::kind_of<std::remove_cvref_t<decltype(kObject)>>());
}

/// Makes every sleeping lock give up spinning early, for as long as it lives.
class EarlySleep {
  public:
    explicit EarlySleep(std::uint64_t spins) noexcept
        : spin_threshold_(sync::tuning.spin_threshold.exchange(spins, std::memory_order_relaxed)),
          qspin_threshold_(sync::tuning.qspin_threshold.exchange(spins, std::memory_order_relaxed)),
          byte_timeout_(sync::tuning.byte_timeout.exchange(spins, std::memory_order_relaxed)) {}
    ~EarlySleep() {
        sync::tuning.spin_threshold.store(spin_threshold_, std::memory_order_relaxed);
        sync::tuning.qspin_threshold.store(qspin_threshold_, std::memory_order_relaxed);
        sync::tuning.byte_timeout.store(byte_timeout_, std::memory_order_relaxed);
    }
    EarlySleep(const EarlySleep&) = delete;
    EarlySleep& operator=(const EarlySleep&) = delete;

  private:
    std::uint64_t spin_threshold_, qspin_threshold_, byte_timeout_;
};

/// All switches that a test turns, as they were, when it ends: thresholds, which begin with `spins`, policies, the way
/// in which kicks travel.
class SavedSwitches {
  public:
    explicit SavedSwitches(std::uint64_t spins) noexcept : thresholds_(spins) {}
    ~SavedSwitches() {
        sync::tuning.wait_early.store(wait_early_, std::memory_order_relaxed);
        sync::tuning.stealing.store(stealing_, std::memory_order_relaxed);
        sync::tuning.kick_holder.store(kick_holder_, std::memory_order_relaxed);
        sync::tuning.relax_hint.store(relax_hint_, std::memory_order_relaxed);
        sync::tuning.directed_yield.store(directed_yield_, std::memory_order_relaxed);
        for (const auto backend : {test::Backend::ipi, test::Backend::kvm, test::Backend::xen})
            paravirt::use_kick_transport(backend, 0);
    }
    SavedSwitches(const SavedSwitches&) = delete;
    SavedSwitches& operator=(const SavedSwitches&) = delete;

  private:
    EarlySleep thresholds_;
    sync::WaitEarly wait_early_ = sync::tuning.wait_early.load(std::memory_order_relaxed);
    sync::Stealing stealing_ = sync::tuning.stealing.load(std::memory_order_relaxed);
    bool kick_holder_ = sync::tuning.kick_holder.load(std::memory_order_relaxed);
    sync::RelaxHint relax_hint_ = sync::tuning.relax_hint.load(std::memory_order_relaxed);
    sync::YieldMethod directed_yield_ = sync::tuning.directed_yield.load(std::memory_order_relaxed);
};

/// Runs `body` on the workers; reports a stall as a failure of the lock and makes the lock usable again. True if all
/// returned. kObject is the lock that the body uses.
template <class L, auto& kObject = lock_under_test<L>>
[[nodiscard]] bool contend(test::TestContext& context, std::uint32_t count, std::uint32_t first, workers::Body body,
                           void* argument, Nanoseconds duration = seconds(60)) noexcept {
    workers::Job job;
    job.body = body;
    job.argument = argument;
    job.count = count;
    job.first = first;
    job.describe = describe_lock<kObject>;
    job.duration = duration;
    const auto outcome = workers::run(job);
    if (outcome.all_completed())
        return true;
    context.fail("stall: CPU %u stood still, %u of %u workers had to be rescued, lock word 0x%llx",
                 raw(outcome.first_stalled), outcome.rescued, outcome.started,
                 static_cast<unsigned long long>(kObject.word()));
    reset_lock<L, kObject>();
    return false;
}

} // namespace spinkick::lock_tests
