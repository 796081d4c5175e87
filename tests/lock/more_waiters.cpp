// SPDX-License-Identifier: BSD-2-Clause
//
// lock.more_waiters: with a holder that keeps the lock long enough for every waiter to give up spinning, all waiters
// still get it, and the sleeping locks really slept: a low threshold, all CPUs queued behind one holder, again and
// again.
#include "tests/lock/lock_test.hpp"

#include "kernel/stress/counters.hpp"

namespace spinkick::lock_tests {
namespace {

struct Shared {
    workers::Barrier barrier{};
    std::atomic<std::uint32_t> acquisitions{0};
    std::uint32_t count = 0;
};
constinit Shared shared{};

constexpr std::uint32_t kRounds = 3;

template <class L>
void work(std::uint32_t worker, void* argument) {
    auto& s = *static_cast<Shared*>(argument);
    auto& lock = lock_under_test<L>;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
        if (worker == round % s.count) {
            lock.lock();
            if (!s.barrier.wait(s.count))
                break;
            const clock::Deadline hold(milliseconds(5)); // the others spin out and sleep meanwhile
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
        if (!s.barrier.wait(s.count))
            break; // nobody is left behind in the queue of this round
    }
}

template <class L>
void run(test::TestContext& context) {
    const auto count = worker_count();
    shared.barrier.reset();
    shared.acquisitions.store(0, std::memory_order_relaxed);
    shared.count = count;
    const EarlySleep early(64);
    const auto slept_before = counters::total(sync::LockEvent::hibernate_stats);
    const bool finished = contend<L>(context, count, 0, work<L>, &shared);
    const auto slept = counters::total(sync::LockEvent::hibernate_stats) - slept_before;
    if (!finished)
        return;
    const auto acquisitions = shared.acquisitions.load(std::memory_order_relaxed);
    if (acquisitions != count * kRounds) {
        reset_lock<L>();
        context.error("%u of %u acquisitions: the workers lost each other", acquisitions, count * kRounds);
    } else if (L::kSleeps && slept == 0)
        context.error(
            "no waiter slept in %u rounds with a threshold of 64 spins: they hardly ever ran beside the holder",
            kRounds);
    else
        context.pass();
}

constexpr auto kTests = tests_of(
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
