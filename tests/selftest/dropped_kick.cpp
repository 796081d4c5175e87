// SPDX-License-Identifier: BSD-2-Clause
//
// selftest.dropped_kick_is_seen: a lock whose kicks are dropped stands still, the watchdog finds it, and the suite goes
// on. selftest.every_third_dropped_kick_is_seen: the same for a machine that loses one kick of three, in hand-overs
// from one CPU to another: among many, the next unlock might wake who was forgotten. The fault is injected below the
// lock (Tuning::drop_every_nth_kick), where a hypervisor that loses kicks would have it.
#include "kernel/stress/counters.hpp"
#include "tests/lock/lock_test.hpp"

namespace spinkick::selftest {
namespace {

using namespace lock_tests;

constinit workers::Barrier start{};

/// Watchdog intervals of the attempts: short where the machine is quiet, and long enough for one that is not.
constexpr std::array kPatience = {milliseconds(40),  milliseconds(80),   milliseconds(200), milliseconds(400),
                                  milliseconds(800), milliseconds(1600), milliseconds(3200)};

/// Takes the lock over and over until the job is over, or until a kick that did not come leaves it asleep.
template <class L>
void work(std::uint32_t, void*) {
    auto& lock = lock_under_test<L>;
    if (!start.wait(worker_count(1)))
        return;
    do {
        lock.lock();
        const clock::Deadline hold(microseconds(300)); // long enough for waiters to go to sleep
        while (!hold.passed())
            machine::relax();
        lock.unlock();
        workers::progress();
    } while (!workers::over());
}

/// One job with kicks as they are; its `duration` bounds the workers that nothing holds up.
template <class L>
workers::Outcome contend_for(Nanoseconds duration) {
    start.reset();
    workers::Job job;
    job.body = work<L>;
    job.count = worker_count(1); // the boot CPU watches: an interrupt to it would end a lost sleep by luck
    job.first = 1;
    job.duration = duration;
    job.stall_expected = true;
    return workers::run(job);
}

/// What a dropped kick is called: a fixed IPI is the machine's, all else the hypervisor's.
/// Or, since a sleep that an interrupt ends takes its kicks as well, and is followed by one that nobody kicks: the
/// lock's.
template <class L>
[[nodiscard]] bool is_called_right(const workers::Outcome& outcome) noexcept {
    constexpr auto kLost =
        L::Machine::kName == std::string_view("ipi") ? workers::StallKind::lost_ipi : workers::StallKind::lost_kick;
    return outcome.stalled &&
           (outcome.verdict.kind == kLost || outcome.verdict.kind == workers::StallKind::lost_wake_up);
}

template <class L>
void run(test::TestContext& context) {
    const auto usual = workers::watchdog();
    sync::tuning.drop_every_nth_kick.store(1, std::memory_order_relaxed); // all of them
    const auto kicks = counters::total(sync::LockEvent::kick_stats);
    workers::Outcome outcome;
    // A vCPU that the host does not let run looks like one that stands still. If that ended a job before there was
    // anything to drop, the job has said nothing.
    for (auto patience : kPatience) {
        if (is_called_right<L>(outcome))
            break;
        workers::set_watchdog(patience);
        const EarlySleep early(64);
        outcome = contend_for<L>(seconds(5));
        reset_lock<L>();
    }
    sync::tuning.drop_every_nth_kick.store(0, std::memory_order_relaxed);
    workers::set_watchdog(usual);
    if (counters::total(sync::LockEvent::kick_stats) == kicks)
        return context.error("no kick was sent, so none was dropped");
    if (!outcome.stalled)
        return context.fail("all kicks were dropped and nobody stood still");
    if (!is_called_right<L>(outcome))
        return context.fail("all kicks were dropped, and the watchdog says: %s", workers::name(outcome.verdict.kind));

    if (contend_for<L>(milliseconds(20)).all_completed()) // the lock is whole again
        context.pass();
    else
        context.fail("the lock did not recover after the rescue");
}

constexpr std::uint32_t kEvery = 3;
constinit std::atomic<bool> again{false}; ///< worker 0 decides for both
constinit std::atomic<std::uint32_t> handed_over{0};

/// Worker 0 holds the lock until worker 1 waits for it and has had the time to fall asleep, and releases it, round by
/// round. (Not asleep yet, it needs no kick, and the next round tries again.)
template <class L>
void hand_over(std::uint32_t worker, void*) {
    auto& lock = lock_under_test<L>;
    do {
        if (worker == 0) {
            lock.lock();
            const auto alone = lock.word();
            const bool both = start.wait(2);
            while (both && lock.word() == alone && !workers::over()) { // until the other one shows
                workers::progress();
                machine::yield();
            }
            const clock::Deadline hold(microseconds(300));
            while (both && !hold.passed())
                machine::relax();
            lock.unlock();
            if (!both)
                return;
            again.store(!workers::over(), std::memory_order_relaxed); // published by the barrier
        } else {
            if (!start.wait(2))
                return;
            lock.lock();
            lock.unlock();
            handed_over.fetch_add(1, std::memory_order_relaxed); // read when the job has ended
        }
        workers::progress();
    } while (start.wait(2) && again.load(std::memory_order_relaxed));
}

template <class L>
workers::Outcome hand_over_for(Nanoseconds duration) {
    start.reset();
    handed_over.store(0, std::memory_order_relaxed);
    workers::Job job;
    job.body = hand_over<L>;
    job.count = 2;
    job.first = 1; // as above
    job.duration = duration;
    job.stall_expected = true;
    return workers::run(job);
}

template <class L>
void run_third(test::TestContext& context) {
    const auto sleeper = workers::cpu_of(1, 1);
    const auto usual = workers::watchdog();
    sync::tuning.drop_every_nth_kick.store(kEvery, std::memory_order_relaxed);
    std::uint64_t kicks = 0;
    bool seen = false;
    // A vCPU that the host does not let run looks like one that stands still: that is none of the dropped kick's.
    for (auto patience : kPatience) {
        if (seen)
            break;
        workers::set_watchdog(patience);
        const EarlySleep early(64);
        const auto before = counters::total(sync::LockEvent::kick_stats);
        const auto outcome = hand_over_for<L>(seconds(5));
        kicks = counters::total(sync::LockEvent::kick_stats) - before;
        // The first wait has taken what others have left, so a kick that was not taken is one of these.
        seen = is_called_right<L>(outcome) && outcome.verdict.cpu == sleeper;
        reset_lock<L>();
    }
    sync::tuning.drop_every_nth_kick.store(0, std::memory_order_relaxed);
    workers::set_watchdog(usual);
    if (!seen && kicks < kEvery)
        return context.error("%llu kicks were sent, and so none was dropped", static_cast<unsigned long long>(kicks));
    if (!seen)
        return context.fail("every third of %llu kicks was dropped and nobody stood still",
                            static_cast<unsigned long long>(kicks));
    if (hand_over_for<L>(milliseconds(20)).all_completed()) // the lock is whole again
        context.pass();
    else
        context.fail("the lock did not recover after the rescue");
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "selftest.dropped_kick_is_seen",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "a lost wake-up is found by the watchdog and called what it is, and the lock works "
                                   "again after the rescue",
                          .min_cpus = 3,
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    lock_tests::SleepingLocks{});
constexpr auto kThirdTests = table_of(
    []<class L>() {
        return test::Test{.name = "selftest.every_third_dropped_kick_is_seen",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "one kick of three that is lost is found by the watchdog",
                          .min_cpus = 3,
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run_third<L>};
    },
    lock_tests::SleepingLocks{});
constinit const test::TestGroup dropped_kick_group{kTests};
constinit const test::TestGroup third_kick_group{kThirdTests};

} // namespace

SPINKICK_REGISTER_TESTS(dropped_kick_group);
SPINKICK_REGISTER_TESTS(third_kick_group);

} // namespace spinkick::selftest
