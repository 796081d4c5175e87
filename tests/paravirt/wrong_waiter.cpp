// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a kick wakes whom it is for. Several vCPUs sleep, with interrupts on or masked; one of them, picked at
// random, is kicked: it wakes, and nobody else does.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

constexpr std::uint32_t kMostWorkers = 6;
constexpr std::uint32_t kLeast = 24;
constexpr Nanoseconds kAsleepAgain = microseconds(150);

struct Shared {
    std::array<Turn, kMostWorkers> go, woke; ///< by worker; each counts that worker's kicks
    std::array<std::atomic<std::uint32_t>, kMostWorkers> wrong{};
    std::atomic<bool> over{false};
    std::uint32_t workers = 0;
    std::uint32_t kicks = 0;
    std::uint64_t seed = 0;
};
constinit Shared shared{};

template <class B>
void sleeper(std::uint32_t worker) noexcept {
    const auto state = B::disable_interrupts();
    if (worker % 2 == 0)
        B::restore_interrupts(state);
    auto& go = shared.go[worker];
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `go`
        while (!go.reached(round)) {
            B::wait_unless([&go, round] { return go.reached(round); });
            if (!go.reached(round))
                shared.wrong[worker].fetch_add(1, std::memory_order_relaxed); // a count
            B::relax();
        }
        shared.woke[worker].set(round);
        workers::progress();
    }
    B::restore_interrupts(state);
}

template <class B>
void kicker() noexcept {
    const auto first = first_cpu(shared.workers);
    const Rounds rounds(milliseconds(20), kLeast);
    Random random(shared.seed);
    std::array<std::uint32_t, kMostWorkers> count{};
    const auto wake = [&](std::uint32_t worker) {
        shared.go[worker].set(++count[worker]);
        B::kick(workers::cpu_of(worker, first));
        shared.woke[worker].await(count[worker]);
        workers::progress();
    };
    for (std::uint32_t round = 1; !rounds.is_last(round); ++round) {
        spin_for(kAsleepAgain);
        wake(static_cast<std::uint32_t>(1 + random.below(shared.workers - 1)));
        ++shared.kicks;
    }
    shared.over.store(true, std::memory_order_relaxed);
    for (std::uint32_t worker = 1; worker < shared.workers; ++worker)
        wake(worker);
}

template <class B>
bool holds(test::TestContext& context) noexcept {
    for (std::uint32_t worker = 0; worker < kMostWorkers; ++worker) {
        shared.go[worker].reset(), shared.woke[worker].reset();
        shared.wrong[worker].store(0, std::memory_order_relaxed);
    }
    shared.over.store(false, std::memory_order_relaxed);
    shared.kicks = 0;
    shared.seed = context.seed();
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(worker); };
    if (!run_workers<B>(context, shared.workers, body, nullptr, "a kick did not reach its vCPU"))
        return false;
    // A sleep may end for no reason now and then; by kicks of others it ends about as often as they are kicked.
    for (std::uint32_t worker = 1; worker < shared.workers; ++worker) {
        const auto wrong = shared.wrong[worker].load(std::memory_order_relaxed);
        if (wrong * 4 <= shared.kicks)
            continue;
        context.fail("%s %u kicks of single vCPUs ended %u sleeps of CPU %u that were not kicked", trial.transport,
                     shared.kicks, wrong, raw(workers::cpu_of(worker, first_cpu(shared.workers))));
        return false;
    }
    return true;
}

template <class B>
void run(test::TestContext& context) {
    const auto most = workers::available(1) >= 3 ? workers::available(1) : workers::available(0);
    shared.workers = most < kMostWorkers ? most : kMostWorkers;
    if (by_each_transport<B>([&context] { return holds<B>(context); }))
        context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.kick_wakes_no_other",
                          .backend = B::kName,
                          .claim = "of several sleeping vCPUs a kick wakes the one that it is for",
                          .min_cpus = 3,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup wrong_waiter_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(wrong_waiter_group);

} // namespace spinkick::paravirt_tests
