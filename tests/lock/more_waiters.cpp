// SPDX-License-Identifier: BSD-2-Clause
//
// lock.more_waiters: with a holder that keeps the lock long enough for every waiter to give up spinning, all waiters
// still get it, and the sleeping locks really slept: a low threshold, all CPUs queued behind one holder, again and
// again, until somebody has slept.
#include "tests/lock/lock_test.hpp"

#include "kernel/stress/counters.hpp"

namespace spinkick::lock_tests {
namespace {

struct Shared {
    workers::Barrier barrier{};
    std::atomic<std::uint32_t> acquisitions{0};
    std::atomic<std::uint32_t> rounds{0};
    std::atomic<bool> again{false}; ///< worker 0 decides for all
    std::uint32_t count = 0;
    std::uint64_t slept_before = 0;
};
constinit Shared shared{};

constexpr std::uint32_t kRounds = 3; // at least

template <class L>
void work(std::uint32_t worker, void* argument) {
    auto& s = *static_cast<Shared*>(argument);
    auto& lock = lock_under_test<L>;
    for (std::uint32_t round = 0;; ++round) {
        if (worker == round % s.count) {
            lock.lock();
            if (!s.barrier.wait(s.count))
                break;
            const clock::Deadline hold(milliseconds(2)); // the others spin out and sleep meanwhile, if they run
            while (!hold.passed())
                machine::relax();
        } else {
            if (!s.barrier.wait(s.count))
                break;
            lock.lock();
        }
        s.acquisitions.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        workers::progress();
        if (worker == 0) {
            const bool slept = counters::total(sync::LockEvent::hibernate_stats) != s.slept_before;
            s.rounds.store(round + 1, std::memory_order_relaxed); // the barrier publishes both
            s.again.store(round + 1 < kRounds || (L::kSleeps && !slept && !workers::over()), std::memory_order_relaxed);
        }
        if (!s.barrier.wait(s.count) || !s.again.load(std::memory_order_relaxed))
            break; // nobody is left behind in the queue of this round
        if (!s.barrier.wait(s.count))
            break; // all have read `again`
    }
}

template <class L>
void run(test::TestContext& context) {
    const auto count = worker_count();
    shared.barrier.reset();
    shared.acquisitions.store(0, std::memory_order_relaxed);
    shared.count = count;
    shared.slept_before = counters::total(sync::LockEvent::hibernate_stats);
    const EarlySleep early(64);
    if (!contend<L>(context, count, 0, work<L>, &shared, seconds(20)))
        return;
    const auto acquisitions = shared.acquisitions.load(std::memory_order_relaxed);
    const auto rounds = shared.rounds.load(std::memory_order_relaxed);
    if (rounds < kRounds || acquisitions != count * rounds) {
        reset_lock<L>();
        context.error("%u acquisitions in %u rounds of %u workers: they lost each other", acquisitions, rounds, count);
    } else if (L::kSleeps && counters::total(sync::LockEvent::hibernate_stats) == shared.slept_before)
        context.error(
            "no waiter slept in %u rounds with a threshold of 64 spins: they hardly ever ran beside the holder",
            rounds);
    else
        context.pass();
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.more_waiters",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim =
                              "every waiter behind a long holder gets the lock, and the sleeping locks sleep for it",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    ExcludingLocks{});
constinit const test::TestGroup waiters_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(waiters_group);

} // namespace spinkick::lock_tests
