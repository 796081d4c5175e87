// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: two kicks before a sleep end one sleep, not two: kicks are a flag and no counter. A round is kick, kick,
// sleep, sleep: the second sleep must last until a third kick. A sleep may end for no reason now and then (that is
// allowed and counted); what two kicks end twice, they end twice in every round.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

struct Shared {
    Turn ready, kicked, asleep, third, returned;
    std::atomic<bool> over{false};
    std::uint32_t rounds = 0;
    std::uint32_t early = 0;
};
constinit Shared shared{};

constexpr Nanoseconds kSettle = microseconds(500); ///< a second sleep that ends by itself has ended by then

template <class B>
void sleeper() noexcept {
    const auto state = B::disable_interrupts();
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `third`
        shared.ready.set(round);
        shared.kicked.await(round);
        B::wait_unless([] { return false; });
        shared.asleep.set(round);
        B::wait_unless([round] { return shared.third.reached(round); });
        if (!shared.third.reached(round))
            ++shared.early;
        while (!shared.third.reached(round)) {
            B::wait_unless([round] { return shared.third.reached(round); });
            B::relax();
        }
        shared.returned.set(round);
        // A third kick that came while the loop ran is still there: it must not count for the next round.
        shared.rounds = round;
        workers::progress();
    }
    B::restore_interrupts(state);
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds;
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.ready.await(round);
        B::kick(target);
        B::kick(target);
        shared.kicked.set(round);
        shared.asleep.await(round);
        spin_for(kSettle);
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        shared.third.set(round);
        B::kick(target);
        shared.returned.await(round);
        workers::progress();
    }
}

template <class B>
void run(test::TestContext& context) {
    shared.ready.reset(), shared.kicked.reset(), shared.asleep.reset(), shared.third.reset(), shared.returned.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.rounds = shared.early = 0;
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a kick was lost"))
        return;
    if (shared.early > shared.rounds / 4)
        return context.fail("two kicks ended a second sleep in %u of %u rounds", shared.early, shared.rounds);
    context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.two_kicks_wake_once",
                          .backend = B::kName,
                          .claim = "two kicks before a halt end one halt and not the next one",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup two_kicks_wake_once_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(two_kicks_wake_once_group);

} // namespace spinkick::paravirt_tests
