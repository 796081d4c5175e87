// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a kick that arrives before the sleep is kept: the next sleep ends without another kick. The sleeper asks
// for sleep unconditionally, with interrupts masked, so that a kick that was dropped leaves it asleep for ever.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

struct Shared {
    Turn ready, kicked, returned;
    std::atomic<bool> over{false};
    std::uint64_t seed = 0;
};
constinit Shared shared{};

template <class B>
void sleeper() noexcept {
    Random random(shared.seed);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `kicked`
        const auto state = B::disable_interrupts();
        if (round % 2 == 0)
            B::restore_interrupts(state);
        shared.ready.set(round);
        shared.kicked.await(round);
        spin_for(microseconds(random.below(20)));
        B::wait_unless([] { return false; });
        B::restore_interrupts(state);
        shared.returned.set(round);
        workers::progress();
    }
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds;
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.ready.await(round);
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        B::kick(target);
        shared.kicked.set(round);
        shared.returned.await(round);
        workers::progress();
    }
}

template <class B>
void run(test::TestContext& context) {
    shared.ready.reset(), shared.kicked.reset(), shared.returned.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.seed = context.seed();
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (run_workers<B>(context, 2, body, nullptr, "a kick before the halt was lost"))
        context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.kick_before_halt_is_kept",
                          .backend = B::kName,
                          .claim = "a kick of a vCPU that is about to halt ends that halt",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup kick_before_halt_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kick_before_halt_group);

} // namespace spinkick::paravirt_tests
