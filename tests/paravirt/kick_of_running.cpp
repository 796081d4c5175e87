// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a kick of a vCPU that runs harms nobody. The target computes a chain in registers and memory whose end is
// known; the interrupt mask stays as it is; a third vCPU, asleep meanwhile, is not woken by kicks that are not for it.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

constexpr std::uint32_t kBystander = 2;
constexpr std::uint32_t kSteps = 200;
constexpr std::uint32_t kKicksPerRound = 20;

struct Shared {
    Turn begin, end, kicked;
    Turn bystander_asleep, release;
    std::atomic<bool> over{false};
    std::atomic<std::uint32_t> wrong_results{0};
    std::atomic<std::uint32_t> wrong_mask{0};
    std::atomic<std::uint32_t> woken{0};
    std::uint32_t kicks = 0;
    bool has_bystander = false;
};
constinit Shared shared{};

/// A chain that any lost or changed register, flag or word of memory turns away for good.
std::uint64_t chain(std::uint64_t value) noexcept {
    std::array<volatile std::uint64_t, 8> memory{};
    for (std::uint32_t i = 0; i < kSteps; ++i) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        memory[i % 8] = memory[(i + 3) % 8] ^ value;
        value ^= memory[i % 8] >> 7;
    }
    return value;
}

template <class B>
void target() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `kicked`
        const auto state = B::disable_interrupts();
        const bool masked = round % 2 == 1;
        if (!masked)
            B::restore_interrupts(state);
        shared.begin.set(round);
        const auto expected = chain(round);
        while (!shared.kicked.reached(round))
            if (chain(round) != expected)
                shared.wrong_results.fetch_add(1, std::memory_order_relaxed); // a count
        if (machine::interrupts_enabled() == masked)
            shared.wrong_mask.fetch_add(1, std::memory_order_relaxed);
        B::restore_interrupts(state);
        shared.end.set(round);
        workers::progress();
    }
}

template <class B>
void kicker() noexcept {
    const auto cpu = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds;
    if (shared.has_bystander) {
        shared.bystander_asleep.await(1);
        spin_for(milliseconds(1));
    }
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.begin.await(round);
        for (std::uint32_t i = 0; i < kKicksPerRound; ++i)
            B::kick(cpu);
        shared.kicks += kKicksPerRound;
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        shared.kicked.set(round);
        shared.end.await(round);
        workers::progress();
    }
    shared.release.set(1);
    if (shared.has_bystander)
        B::kick(workers::cpu_of(kBystander, first_cpu()));
}

template <class B>
void bystander() noexcept {
    const auto state = B::disable_interrupts();
    shared.bystander_asleep.set(1);
    while (!shared.release.reached(1)) {
        B::wait_unless([] { return shared.release.reached(1); });
        if (!shared.release.reached(1))
            shared.woken.fetch_add(1, std::memory_order_relaxed); // a count
        B::relax(); // a wait that does not sleep must not drown the others
    }
    B::restore_interrupts(state);
    workers::progress();
}

template <class B>
void run(test::TestContext& context) {
    shared.begin.reset(), shared.end.reset(), shared.kicked.reset();
    shared.bystander_asleep.reset(), shared.release.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.wrong_results.store(0, std::memory_order_relaxed);
    shared.wrong_mask.store(0, std::memory_order_relaxed);
    shared.woken.store(0, std::memory_order_relaxed);
    shared.kicks = 0;
    shared.has_bystander = workers::available(first_cpu()) > kBystander;
    const auto body = [](std::uint32_t worker, void*) {
        if (worker == kKicker)
            return kicker<B>();
        worker == kSleeper ? target<B>() : bystander<B>();
    };
    if (!run_workers<B>(context, shared.has_bystander ? 3 : 2, body, nullptr,
                        "kicks of a running vCPU stalled the machine"))
        return;
    if (const auto wrong = shared.wrong_results.load(std::memory_order_relaxed); wrong != 0)
        return context.fail("%u computations went wrong under %u kicks", wrong, shared.kicks);
    if (const auto wrong = shared.wrong_mask.load(std::memory_order_relaxed); wrong != 0)
        return context.fail("the interrupt mask changed in %u rounds", wrong);
    // A sleep may end for no reason now and then; one that every kick ends is another matter.
    if (const auto woken = shared.woken.load(std::memory_order_relaxed); woken > shared.kicks / kKicksPerRound / 4)
        return context.fail("%u kicks of another vCPU ended %u sleeps of a bystander", shared.kicks, woken);
    context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.kick_of_running_harms_nobody",
                          .backend = B::kName,
                          .claim = "a kick of a running vCPU changes nothing there and wakes nobody else",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup kick_of_running_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kick_of_running_group);

} // namespace spinkick::paravirt_tests
