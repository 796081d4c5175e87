// SPDX-License-Identifier: BSD-2-Clause
//
// lock.switches: the switches of the locks act while the locks are in use, and none of them lets two CPUs in at once.
//
// Worker 0 conducts: it turns the switches, and takes the lock itself now and then. The others take the lock up to a
// quota that it raises, so that every step is a number of acquisitions and no step is a time:
//
//   tiny thresholds    rounds behind a long holder, until somebody has slept
//   huge thresholds    two acquisitions of each worker: those that began with the old value are over then. After that a
//                      fixed number of them, in which nobody may go to sleep
//   all switches       each setting of each switch, and then a random walk through them
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arch/x86/paravirt/paravirt.hpp"
#include "kernel/stress/counters.hpp"
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

using sync::LockEvent;
using sync::tuning;

constexpr std::uint64_t kTiny = 1;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
constexpr std::uint32_t kCycles = 2;         ///< from tiny to huge and back
constexpr std::uint32_t kAcquisitions = 6;   ///< of each worker, in which nobody may sleep
constexpr std::uint32_t kRandomSettings = 8; ///< the soak turns them at random for hours

enum class Ending : std::uint8_t { none, complete, nobody_slept, slept, not_settled, not_all_set };

/// What a worker has done; on a line of its own.
struct alignas(64) Done {
    std::atomic<std::uint32_t> acquisitions{0};
};

struct Shared {
    std::array<Done, kMostWorkers> done{};
    std::atomic<std::uint32_t> quota{0};
    std::atomic<bool> stop{false};
    std::atomic<std::uint32_t> intrusions{0};
    // Under the lock.
    std::atomic<std::uint32_t> inside{0}; ///< worker + 1
    std::atomic<std::uint32_t> sections{0};
    // The conductor's.
    std::uint32_t count = 0;
    std::uint64_t random = 0;
    Ending ending = Ending::none;
    std::uint64_t sleeps = 0;   ///< with huge thresholds
    std::uint32_t settings = 0; ///< tried
    test::Backend backend{};
};
constinit Shared shared{};

void set_thresholds(std::uint64_t spins) noexcept {
    tuning.spin_threshold.store(spins, std::memory_order_relaxed);
    tuning.qspin_threshold.store(spins, std::memory_order_relaxed);
    tuning.byte_timeout.store(spins, std::memory_order_relaxed);
}

/// Every setting of every switch.
using Setting = void (*)() noexcept;
constexpr auto kSettings = std::to_array<Setting>({
    []() noexcept { set_thresholds(0); },
    []() noexcept { tuning.wait_early.store(sync::WaitEarly::preempted, std::memory_order_relaxed); },
    []() noexcept { tuning.stealing.store(sync::Stealing::off, std::memory_order_relaxed); },
    []() noexcept { tuning.spin_threshold.store(kHuge, std::memory_order_relaxed); },
    []() noexcept { tuning.qspin_threshold.store(kHuge, std::memory_order_relaxed); },
    []() noexcept { tuning.byte_timeout.store(kHuge, std::memory_order_relaxed); },
    []() noexcept { tuning.relax_hint.store(sync::RelaxHint::lfence, std::memory_order_relaxed); },
    []() noexcept { tuning.directed_yield.store(sync::YieldMethod::flags, std::memory_order_relaxed); },
    []() noexcept { tuning.kick_holder.store(false, std::memory_order_relaxed); },
    []() noexcept { tuning.spin_threshold.store(kTiny, std::memory_order_relaxed); },
    []() noexcept { tuning.qspin_threshold.store(kTiny, std::memory_order_relaxed); },
    []() noexcept { tuning.byte_timeout.store(kTiny, std::memory_order_relaxed); },
    []() noexcept { tuning.wait_early.store(sync::WaitEarly::off, std::memory_order_relaxed); },
    []() noexcept { tuning.stealing.store(sync::Stealing::entry, std::memory_order_relaxed); },
    []() noexcept { tuning.relax_hint.store(sync::RelaxHint::none, std::memory_order_relaxed); },
    []() noexcept { tuning.directed_yield.store(sync::YieldMethod::bitmap, std::memory_order_relaxed); },
    []() noexcept { set_thresholds(1024); },
    []() noexcept { paravirt::use_kick_transport(shared.backend, 1); },
    []() noexcept { tuning.kick_holder.store(true, std::memory_order_relaxed); },
    []() noexcept { tuning.wait_early.store(sync::WaitEarly::state, std::memory_order_relaxed); },
    []() noexcept { tuning.stealing.store(sync::Stealing::on, std::memory_order_relaxed); },
    []() noexcept { tuning.relax_hint.store(sync::RelaxHint::pause, std::memory_order_relaxed); },
    []() noexcept { tuning.directed_yield.store(sync::YieldMethod::off, std::memory_order_relaxed); },
    []() noexcept { paravirt::use_kick_transport(shared.backend, 0); },
});

/// Between lock() and unlock().
void visit(std::uint32_t worker) noexcept {
    auto& s = shared;
    const auto intrusion = [] { shared.intrusions.fetch_add(1, std::memory_order_relaxed); };
    if (s.inside.exchange(worker + 1, std::memory_order_relaxed) != 0)
        intrusion();
    // Not an RMW: two that are in here at once lose one of the counts.
    const auto sections = s.sections.load(std::memory_order_relaxed);
    for (int i = 0; i < 20; ++i)
        if (s.inside.load(std::memory_order_relaxed) != worker + 1)
            intrusion();
    s.sections.store(sections + 1, std::memory_order_relaxed);
    if (s.inside.exchange(0, std::memory_order_relaxed) != worker + 1)
        intrusion();
}

void visited(std::uint32_t worker) noexcept {
    auto& mine = shared.done[worker].acquisitions;
    // release: what this CPU counted in its wait is seen with it.
    mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    workers::progress();
}

template <class L>
void take(std::uint32_t worker) noexcept {
    lock_under_test<L>.lock();
    visit(worker);
    lock_under_test<L>.unlock();
    visited(worker);
}

[[nodiscard]] bool all_done() noexcept {
    const auto quota = shared.quota.load(std::memory_order_relaxed);
    for (std::uint32_t worker = 1; worker < shared.count; ++worker)
        if (shared.done[worker].acquisitions.load(std::memory_order_acquire) < quota)
            return false;
    return true;
}

/// Waits until every worker has used up its quota, and takes part. False: not within the duration of the job.
template <class L>
[[nodiscard]] bool fill_quota() noexcept {
    while (!all_done()) {
        if (workers::over())
            return false;
        take<L>(0);
        machine::yield();
    }
    return true;
}

void raise_quota(std::uint32_t by) noexcept { shared.quota.fetch_add(by, std::memory_order_relaxed); }

[[nodiscard]] std::uint64_t sleeps() noexcept { return counters::total(LockEvent::hibernate_stats); }

/// Raises the quota with the lock in hand, and keeps it for a while: the others get here meanwhile, if they run.
template <class L>
void hold_long(std::uint32_t quota) noexcept {
    lock_under_test<L>.lock();
    raise_quota(quota);
    const clock::Deadline hold(milliseconds(1));
    while (!hold.passed())
        machine::relax();
    visit(0);
    lock_under_test<L>.unlock();
    visited(0);
}

/// With tiny thresholds: a long holder again and again, until somebody has slept for it.
template <class L>
[[nodiscard]] bool somebody_sleeps() noexcept {
    const auto before = sleeps();
    set_thresholds(kTiny);
    do {
        hold_long<L>(1);
        if (!fill_quota<L>())
            return false;
    } while (sleeps() == before && !workers::over());
    return sleeps() != before;
}

template <class L>
[[nodiscard]] Ending nobody_sleeps() noexcept {
    set_thresholds(kHuge);
    // A predecessor that halts would be a reason to sleep at any threshold.
    tuning.wait_early.store(sync::WaitEarly::off, std::memory_order_relaxed);
    raise_quota(2);
    if (!fill_quota<L>())
        return Ending::not_settled;
    const auto before = sleeps();
    for (std::uint32_t acquired = 0; acquired < kAcquisitions; acquired += 2) {
        hold_long<L>(2);
        if (!fill_quota<L>())
            return Ending::not_settled;
    }
    shared.sleeps = sleeps() - before;
    return shared.sleeps == 0 ? Ending::complete : Ending::slept;
}

/// Which setting is next (Knuth's 64-bit generator; its upper half is the better one).
std::uint32_t random() noexcept {
    shared.random = shared.random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(shared.random >> 32);
}

template <class L>
[[nodiscard]] Ending all_settings() noexcept {
    auto& s = shared;
    for (s.settings = 0; s.settings < kSettings.size() + kRandomSettings; ++s.settings) {
        const std::size_t which = s.settings < kSettings.size() ? s.settings : random() % kSettings.size();
        raise_quota(2);
        take<L>(0); // in the middle of it:
        kSettings[which]();
        if (!fill_quota<L>())
            return s.settings < kSettings.size() ? Ending::not_all_set : Ending::complete;
    }
    return Ending::complete;
}

template <class L>
[[nodiscard]] Ending conduct() noexcept {
    for (std::uint32_t cycle = 0; cycle < kCycles; ++cycle) {
        if (!somebody_sleeps<L>())
            return Ending::nobody_slept;
        if (const auto ending = nobody_sleeps<L>(); ending != Ending::complete)
            return ending;
    }
    return all_settings<L>();
}

template <class L>
void work(std::uint32_t worker, void*) {
    auto& s = shared;
    if (worker == 0) {
        s.ending = conduct<L>();
        s.stop.store(true, std::memory_order_release);
        return;
    }
    const auto& mine = s.done[worker].acquisitions;
    while (!s.stop.load(std::memory_order_acquire)) {
        if (mine.load(std::memory_order_relaxed) < s.quota.load(std::memory_order_relaxed)) {
            take<L>(worker);
        } else {
            workers::progress();
            machine::yield();
        }
    }
}

template <class L>
void run(test::TestContext& context) {
    using B = typename L::Machine;
    auto& s = shared;
    for (auto& done : s.done)
        done.acquisitions.store(0, std::memory_order_relaxed); // no worker runs yet, here and below
    for (auto* number : {&s.quota, &s.intrusions, &s.inside, &s.sections})
        number->store(0, std::memory_order_relaxed);
    s.stop.store(false, std::memory_order_relaxed);
    s.count = worker_count();
    s.random = context.seed();
    s.ending = Ending::none;
    const auto no_yield = paravirt::directed_yield_unavailable(paravirt::need_of<B>());
    counters::Reader counts;
    (void)counts.reset();

    s.backend = paravirt::need_of<B>();
    const SavedSwitches saved(kHuge);
    if (!contend<L>(context, s.count, 0, work<L>, nullptr, seconds(30)))
        return;
    std::uint32_t acquisitions = 0;
    for (const auto& done : s.done)
        acquisitions += done.acquisitions.load(std::memory_order_relaxed);
    const auto sections = s.sections.load(std::memory_order_relaxed);
    if (const auto intrusions = s.intrusions.load(std::memory_order_relaxed); intrusions != 0)
        return context.fail("%u intrusions in %u acquisitions", intrusions, acquisitions);
    if (sections != acquisitions)
        return context.fail("%u acquisitions left %u marks: two were in at once", acquisitions, sections);
    const auto counted = counts.reset();
    const auto tried = counted[LockEvent::directed_yield_tried];
    if (tried != 0 && !no_yield.empty())
        return context.fail("%llu yields, and this machine cannot: %.*s", static_cast<unsigned long long>(tried),
                            static_cast<int>(no_yield.size()), no_yield.data());
    if (tried != counted[LockEvent::directed_yield_preempted] + counted[LockEvent::directed_yield_stale])
        return context.fail("of %llu vCPUs picked to yield to, %llu were preempted and %llu not any more",
                            static_cast<unsigned long long>(tried),
                            static_cast<unsigned long long>(counted[LockEvent::directed_yield_preempted]),
                            static_cast<unsigned long long>(counted[LockEvent::directed_yield_stale]));
    if (counted.blocked.count() != counted[LockEvent::hibernate_stats])
        return context.fail("%llu waits slept, %llu have a length",
                            static_cast<unsigned long long>(counted[LockEvent::hibernate_stats]),
                            static_cast<unsigned long long>(counted.blocked.count()));
    switch (s.ending) {
    case Ending::complete:
        return context.pass();
    case Ending::slept:
        return context.fail("%llu waits slept although the thresholds had been raised to 2^63",
                            static_cast<unsigned long long>(s.sleeps));
    case Ending::nobody_slept:
        return context.error("nobody slept in 30 s with thresholds of %llu: the switch does not act, or the workers "
                             "hardly ever ran at the same time",
                             static_cast<unsigned long long>(kTiny));
    case Ending::not_settled:
        return context.error("%u workers did not take the lock %u times in 30 s", s.count, kAcquisitions);
    case Ending::not_all_set:
        return context.error("%u of %zu settings tried in 30 s", s.settings, kSettings.size());
    case Ending::none:
        return context.error("the conductor did not come to its end");
    }
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.switches",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "every switch acts on the lock while it is in use, and it excludes throughout",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    SleepingLocks{});
constinit const test::TestGroup switches_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(switches_group);

} // namespace spinkick::lock_tests
