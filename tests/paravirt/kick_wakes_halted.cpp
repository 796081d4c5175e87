// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a kick ends the sleep of a halted vCPU, with interrupts masked and not, and the mask is as it was
// afterwards.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

struct Shared {
    Turn asleep, go, woke;
    std::atomic<bool> over{false};
    std::uint64_t seed = 0;
    std::uint32_t rounds = 0;
    std::uint32_t wrong_mask = 0;
};
constinit Shared shared{};

template <class B>
void sleeper() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed);
         ++round) { // set before `go`, which is acquired
        const bool masked = round % 2 == 1;
        const auto state = B::disable_interrupts();
        if (!masked)
            B::restore_interrupts(state);
        shared.asleep.set(round);
        while (!shared.go.reached(round)) {
            B::wait_unless([round] { return shared.go.reached(round); });
            if (machine::interrupts_enabled() == masked)
                ++shared.wrong_mask;
            B::relax(); // a wait that does not sleep must not drown the others
        }
        B::restore_interrupts(state);
        shared.woke.set(round);
        workers::progress();
    }
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds;
    Random random(shared.seed);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.asleep.await(round);
        spin_for(microseconds(random.below(200))); // from "about to halt" to "long halted"
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        shared.go.set(round);
        B::kick(target);
        shared.woke.await(round);
        shared.rounds = round;
        workers::progress();
    }
}

template <class B>
void run(test::TestContext& context) {
    shared.asleep.reset(), shared.go.reset(), shared.woke.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.seed = context.seed();
    shared.rounds = shared.wrong_mask = 0;
    const auto slept = total(sync::LockEvent::hibernate_stats);
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a kick did not end the sleep"))
        return;
    if (shared.wrong_mask != 0)
        return context.fail("the interrupt mask was changed by %u waits in %u rounds", shared.wrong_mask,
                            shared.rounds);
    if (total(sync::LockEvent::hibernate_stats) == slept)
        return context.error("nobody slept in %u rounds: the claim was not tried", shared.rounds);
    context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.kick_wakes_halted",
                          .backend = B::kName,
                          .claim = "a kick ends the sleep of a halted vCPU and leaves the interrupt mask as it was",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup kick_wakes_halted_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kick_wakes_halted_group);

} // namespace spinkick::paravirt_tests
