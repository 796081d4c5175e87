// SPDX-License-Identifier: BSD-2-Clause
//
// lock.try_lock: true exactly if the lock was free; the caller then holds it; a refusal changes nothing.
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

struct Shared {
    std::atomic<std::uint32_t> phase{0};
    std::atomic<std::uint32_t> wrong{0};
    std::atomic<std::uint32_t> rounds{0};
};
constinit Shared shared{};
constexpr std::uint32_t kRounds = 25;

bool wait_for_phase(Shared& s, std::uint32_t phase) noexcept {
    const clock::Deadline deadline(workers::watchdog());
    while (s.phase.load(std::memory_order_acquire) < phase) { // acquires what the other side did before it moved on
        if (deadline.passed())
            return false;
        workers::progress();
        machine::relax();
    }
    return true;
}

template <class L>
void work(std::uint32_t worker, void* argument) {
    auto& s = *static_cast<Shared*>(argument);
    auto& lock = lock_under_test<L>;
    std::uint32_t wrong = 0;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
        const auto base = round * 4;
        if (worker == 0) {
            wrong += !lock.try_lock(); // free: must succeed
            wrong += lock.try_lock();  // held by this CPU: must refuse, not recurse
            s.phase.store(base + 1, std::memory_order_release);
            if (!wait_for_phase(s, base + 2))
                break;
            lock.unlock();
            s.phase.store(base + 3, std::memory_order_release);
            if (!wait_for_phase(s, base + 4))
                break;
        } else {
            if (!wait_for_phase(s, base + 1))
                break;
            wrong += lock.try_lock(); // held by another CPU
            s.phase.store(base + 2, std::memory_order_release);
            if (!wait_for_phase(s, base + 3))
                break;
            wrong += !lock.try_lock(); // freed by another CPU
            lock.unlock();
            s.phase.store(base + 4, std::memory_order_release);
        }
        s.rounds.fetch_add(1, std::memory_order_relaxed);
        workers::progress();
    }
    s.wrong.fetch_add(wrong, std::memory_order_relaxed);
}

template <class L>
void work_alone(std::uint32_t, void* argument) {
    auto& s = *static_cast<Shared*>(argument);
    auto& lock = lock_under_test<L>;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
        if (!lock.try_lock())
            s.wrong.fetch_add(1, std::memory_order_relaxed);
        if (lock.try_lock())
            s.wrong.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        s.rounds.fetch_add(1, std::memory_order_relaxed);
        workers::progress();
    }
}

template <class L>
void run(test::TestContext& context) {
    shared.phase.store(0, std::memory_order_relaxed);
    shared.wrong.store(0, std::memory_order_relaxed);
    shared.rounds.store(0, std::memory_order_relaxed);
    const bool two = machine::cpu_count() >= 2;
    if (!contend<L>(context, two ? 2 : 1, 0, two ? work<L> : work_alone<L>, &shared))
        return;
    if (const auto rounds = shared.rounds.load(std::memory_order_relaxed); rounds != (two ? 2 * kRounds : kRounds)) {
        reset_lock<L>();
        return context.error("%u rounds ended, %u were to: the workers lost each other", rounds,
                             two ? 2 * kRounds : kRounds);
    }
    const auto wrong = shared.wrong.load(std::memory_order_relaxed);
    if (wrong != 0)
        context.fail("%u wrong answers", wrong);
    else
        context.pass();
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.try_lock",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "try_lock() returns true exactly if the lock was free, and the caller then holds it",
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    ExcludingLocks{});
constinit const test::TestGroup try_lock_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(try_lock_group);

} // namespace spinkick::lock_tests
