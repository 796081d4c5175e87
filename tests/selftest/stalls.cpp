// SPDX-License-Identifier: BSD-2-Clause
//
// selftest.stall_*: one standstill for each word of the watchdog, with the dump as a user gets it. All of them run on
// request only, and end as failures; tests/platforms/stalls_test.sh provokes them and reads what the dump calls them.
//
// What only the host can do is not in here: it starves a vCPU if there are more of them than CPUs, and it pauses the
// guest in selftest.pause_is_forgiven, which is the one that passes.
#include <array>

#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/traced_lock_code.hpp" // of a lock of its own
#include "kernel/sync/pv_queued_lock.hpp"
#include "kernel/sync/tas_lock.hpp"
#include "kernel/sync/ticket_lock.hpp"
#include "kernel/test/faults.hpp"
#include "tests/lock/lock_test.hpp"
#include "tests/selftest/standstills.hpp"

namespace spinkick::selftest {
namespace {

using namespace lock_tests;

constinit workers::Barrier start{};

/// The boot CPU watches; it works only where nobody else is left for it.
[[nodiscard]] std::uint32_t first_cpu(std::uint32_t count) noexcept { return workers::available(1) >= count ? 1 : 0; }

/// A job with the dump.
[[nodiscard]] workers::Outcome run_job(workers::Body body, std::uint32_t count) noexcept {
    start.reset();
    workers::Job job;
    job.body = body;
    job.count = count;
    job.first = first_cpu(count);
    return workers::run(job);
}

/// The end of every standstill here.
void report(test::TestContext& context, const workers::Outcome& outcome) {
    if (outcome.stalled)
        context.fail("on request; the watchdog says: %s", workers::name(outcome.verdict.kind));
    else
        context.error("nobody stood still");
}

// --- a sleeper that nothing wakes ------------------------------------------------------------------------------------

/// The back end below a lock that forgets to kick whom it lets in.
template <class B>
struct Forgetful : B {
    static void kick(CpuId) noexcept {}
};

/// How long worker 0 keeps the lock when worker 1 waits for it: that one has to be asleep by then.
constinit Nanoseconds hold{};

/// Worker 0 releases the lock when worker 1 sleeps.
template <class L>
void hand_over(std::uint32_t worker, void*) {
    auto& lock = lock_under_test<L>;
    if (worker != 0) {
        if (!start.wait(2))
            return;
        workers::note("waits for the lock");
        lock.lock();
        lock.unlock();
        return;
    }
    lock.lock();
    const auto alone = lock.word();
    if (start.wait(2)) {
        while (lock.word() == alone && !workers::over()) { // until the other one shows
            workers::progress();
            machine::yield();
        }
        const clock::Deadline deadline(hold);
        while (!deadline.passed()) {
            workers::progress();
            machine::relax();
        }
    }
    lock.unlock();
}

/// A waiter that had not fallen asleep needs no kick; then the next attempt holds the lock for longer.
template <class L>
void oversleep(test::TestContext& context) {
    constexpr std::uint32_t kAttempts = 6;
    const EarlySleep early(64);
    workers::Outcome outcome;
    hold = milliseconds(20);
    for (std::uint32_t attempt = 0; attempt < kAttempts && !outcome.stalled; ++attempt) {
        outcome = run_job(hand_over<L>, 2);
        hold = hold + hold;
    }
    reset_lock<L>();
    report(context, outcome);
}

template <class L>
void lose_kicks(test::TestContext& context) {
    sync::tuning.drop_every_nth_kick.store(1, std::memory_order_relaxed); // all of them
    oversleep<L>(context);
    sync::tuning.drop_every_nth_kick.store(0, std::memory_order_relaxed);
}

// --- spinners --------------------------------------------------------------------------------------------------------

/// Two workers over a pair of locks, in one of the ways of standstills.hpp.
using Paired = stress::Traced<sync::TicketLock<paravirt::Native>>;

template <workers::Body kBody>
void stand_still(test::TestContext& context) {
    renew_pair<Paired>();
    const auto outcome = run_job(kBody, 2);
    renew_pair<Paired>();
    report(context, outcome);
}

/// Worker 0 has work without end under the lock; worker 1 gets no turn.
using Hogged = sync::TasLock<paravirt::Native>;

void hog(std::uint32_t worker, void*) {
    auto& lock = lock_under_test<Hogged>;
    if (worker != 0) {
        if (!start.wait(2))
            return;
        workers::note("waits for the lock");
        lock.lock();
        lock.unlock();
        return;
    }
    lock.lock();
    if (start.wait(2)) {
        workers::note("holds the lock");
        while (!workers::over()) {
            workers::progress();
            machine::relax();
        }
    }
    lock.unlock();
}

void starve(test::TestContext& context) {
    const auto outcome = run_job(hog, 2);
    reset_lock<Hogged>();
    report(context, outcome);
}

// --- a CPU that takes no NMI -----------------------------------------------------------------------------------------

/// Stays in one NMI until the watchdog must have asked by another. Not for ever: then nobody could throw it out.
void stay_in_nmi(std::uint32_t, void*) {
    machine::set_level_handlers({.interrupt = []() noexcept {},
                                 .higher_interrupt = []() noexcept {},
                                 .nmi =
                                     []() noexcept {
                                         workers::note("stays in an NMI");
                                         const clock::Deadline deadline(workers::watchdog() + seconds(2));
                                         while (!deadline.passed())
                                             machine::relax();
                                     }});
    machine::interrupt_at(machine::this_cpu(), machine::Level::nmi);
    for (;;)
        machine::relax();
}

void refuse_nmis(test::TestContext& context) { report(context, run_job(stay_in_nmi, 1)); }

// --- a host that does not run its vCPUs ------------------------------------------------------------------------------

/// Fewer vCPUs on one CPU have a fair share each.
constexpr std::uint32_t kCrowd = 9;

/// Work that a vCPU still owes when it was not run; see calibrated_work.hpp.
constexpr std::uint64_t kUnits = 1000;

/// Worker 0 works under the lock for which worker 1 sleeps; all others keep the host's CPUs busy and get on.
template <class L>
void hold_among_busy(std::uint32_t worker, void*) {
    auto& lock = lock_under_test<L>;
    if (worker == 0)
        lock.lock();
    if (!start.wait(workers::available(1)))
        return;
    if (worker == 1) {
        workers::note("waits for the lock");
        lock.lock();
        lock.unlock();
        return;
    }
    workers::note(worker == 0 ? "holds the lock" : "is busy");
    while (!workers::over()) {
        stress::work(kUnits);
        if (worker != 0)
            workers::progress();
    }
    if (worker == 0)
        lock.unlock();
}

template <class L>
void preempt_holder(test::TestContext& context) {
    const EarlySleep early(64);
    const auto outcome = run_job(hold_among_busy<L>, workers::available(1));
    reset_lock<L>();
    report(context, outcome);
}

/// All work, each on its own, for longer than the watchdog waits.
void work_silently(std::uint32_t, void*) {
    if (!start.wait(workers::available(1)))
        return;
    while (!workers::over())
        stress::work(kUnits);
}

void slow_down(test::TestContext& context) { report(context, run_job(work_silently, workers::available(1))); }

/// All get on, for long enough to pause them meanwhile.
void get_on(std::uint32_t, void*) {
    while (!workers::over()) {
        workers::progress();
        machine::relax();
    }
}

void be_paused(test::TestContext& context) {
    workers::Job job;
    job.body = get_on;
    job.first = first_cpu(1);
    job.count = workers::available(job.first);
    job.duration = seconds(5);
    const auto outcome = workers::run(job);
    if (outcome.all_completed())
        context.pass();
    else
        report(context, outcome);
}

// --- the tests -------------------------------------------------------------------------------------------------------

template <class B>
using Forgotten = sync::PvQueuedLock<Forgetful<B>>;
template <class B>
using Sleeping = sync::PvQueuedLock<B>;

template <class B>
constexpr test::Test kLostWakeUp{.name = "selftest.stall_lost_wake_up",
                                 .lock = Forgotten<B>::kName,
                                 .backend = B::kName,
                                 .claim = "a sleeper that the lock forgets to kick is the lock's fault",
                                 .min_cpus = 3,
                                 .needs = paravirt::need_of<B>(),
                                 .run = oversleep<Forgotten<B>>,
                                 .on_request = true};
template <class B>
constexpr test::Test kLostKick{.name = "selftest.stall_lost_kick",
                               .lock = Sleeping<B>::kName,
                               .backend = B::kName,
                               .claim = "a sleeper whose kick is dropped is the hypervisor's fault",
                               .min_cpus = 3,
                               .needs = paravirt::need_of<B>(),
                               .run = lose_kicks<Sleeping<B>>,
                               .on_request = true};
template <class B>
constexpr test::Test kHolderPreempted{.name = "selftest.stall_holder_preempted",
                                      .lock = Sleeping<B>::kName,
                                      .backend = B::kName,
                                      .claim = "a holder that shares its CPU with many others is what holds them up",
                                      .min_cpus = kCrowd,
                                      .needs = paravirt::need_of<B>(),
                                      .run = preempt_holder<Sleeping<B>>,
                                      .on_request = true};
template <class B>
constexpr test::Test kSlowHost{.name = "selftest.stall_slow_host",
                               .backend = B::kName,
                               .claim = "vCPUs that all share one CPU stand still for the host's sake",
                               .min_cpus = kCrowd,
                               .needs = paravirt::need_of<B>(),
                               .run = slow_down,
                               .on_request = true};

constexpr std::array kTests = {
    kLostWakeUp<paravirt::Ipi>,
    kLostWakeUp<paravirt::Kvm>,
    kLostWakeUp<paravirt::Xen>,
    test::Test{.name = "selftest.stall_lost_ipi",
               .lock = Sleeping<paravirt::Ipi>::kName,
               .backend = paravirt::Ipi::kName,
               .claim = "a sleeper whose IPI is dropped is the machine's fault",
               .min_cpus = 3,
               .needs = test::Backend::ipi,
               .run = lose_kicks<Sleeping<paravirt::Ipi>>,
               .on_request = true},
    kLostKick<paravirt::Kvm>,
    kLostKick<paravirt::Xen>,
    test::Test{.name = "selftest.stall_deadlock",
               .claim = "two workers that wait for each other's lock are a deadlock",
               .min_cpus = 2,
               .run = stand_still<take_both<Paired>>,
               .on_request = true},
    test::Test{.name = "selftest.stall_starvation",
               .claim = "a worker that gets no turn while the holder gets on starves",
               .min_cpus = 2,
               .run = starve,
               .on_request = true},
    test::Test{.name = "selftest.stall_holder_stuck",
               .claim = "a holder that goes to sleep in its section is what holds the other up",
               .min_cpus = 2,
               .run = stand_still<keep_the_lock<Paired, faults::halt_with_interrupts_on>>,
               .on_request = true},
    test::Test{.name = "selftest.stall_no_answer",
               .claim = "a CPU that is lost in an NMI is named",
               .min_cpus = 2,
               .run = refuse_nmis,
               .on_request = true},
    kHolderPreempted<paravirt::Kvm>,
    kHolderPreempted<paravirt::Xen>,
    kSlowHost<paravirt::Kvm>,
    kSlowHost<paravirt::Xen>,
    test::Test{.name = "selftest.pause_is_forgiven",
               .claim = "a guest that is paused from outside has not stalled",
               .run = be_paused,
               .on_request = true},
};
constinit const test::TestGroup stalls_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(stalls_group);

} // namespace spinkick::selftest
