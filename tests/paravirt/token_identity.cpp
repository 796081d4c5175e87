// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: every kick is accounted for. A storm of kicks and waits between all CPUs, and then, at rest, the account
// that every test of a kick ends with (pair.hpp). Each of its terms is counted where it happens
// (kernel/sync/kick_tokens.hpp), so that a hypervisor that invents wake-ups, or a back end that forgets a wait, does
// not add up. A kick that is lost leaves a sleeper for the watchdog.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

constexpr std::uint32_t kMostWorkers = 8;

struct Shared {
    std::atomic<bool> stop{false};
    std::atomic<std::uint32_t> inside{0};
    std::uint32_t workers = 0;
    std::uint64_t seed = 0;
};
constinit Shared shared{};

/// Kicks everybody, in turn and at random, until the time is over; then until all others have left.
template <class B>
void kicker() noexcept {
    Random random(shared.seed);
    const clock::Deadline deadline(kTime);
    std::uint32_t kicks = 0;
    while (!deadline.passed() || kicks < kLeastRounds * shared.workers) {
        B::kick(workers::cpu_of(static_cast<std::uint32_t>(1 + random.below(shared.workers - 1)), first_cpu()));
        ++kicks;
        spin_for(microseconds(random.below(100)));
        workers::progress();
    }
    shared.stop.exchange(true, std::memory_order_seq_cst); // published before the kicks below
    for (std::uint32_t worker = 1; worker < shared.workers; ++worker)
        B::kick(workers::cpu_of(worker, first_cpu()));
    while (shared.inside.load(std::memory_order_acquire) != 0)
        machine::relax();
    workers::progress();
}

template <class B>
void sleeper(std::uint32_t worker) noexcept {
    Random random(shared.seed + worker * 0x9e3779b97f4a7c15);
    while (!shared.stop.load(std::memory_order_acquire)) {
        const auto state = B::disable_interrupts();
        if (random.below(2) == 0)
            B::restore_interrupts(state);
        B::wait_unless([] { return shared.stop.load(std::memory_order_acquire); });
        B::restore_interrupts(state);
        if (random.below(4) == 0) // also the kicker, which never waits: its tokens stay unspent
            B::kick(workers::cpu_of(static_cast<std::uint32_t>(random.below(shared.workers)), first_cpu()));
        workers::progress();
    }
    shared.inside.fetch_sub(1, std::memory_order_release);
}

template <class B>
void run(test::TestContext& context) {
    shared.stop.store(false, std::memory_order_relaxed);
    shared.seed = context.seed();
    const auto available = workers::available(first_cpu());
    shared.workers = available < kMostWorkers ? available : kMostWorkers;
    shared.inside.store(shared.workers - 1, std::memory_order_relaxed);
    const auto sent = total(sync::LockEvent::kick_stats), ended = total(sync::LockEvent::token_ended);
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(worker); };
    if (!run_workers<B>(context, shared.workers, body, nullptr, "a kick was lost"))
        return;
    if (total(sync::LockEvent::token_ended) == ended)
        return context.error("no kick ended a sleep among %llu: the claim was not tried",
                             static_cast<unsigned long long>(total(sync::LockEvent::kick_stats) - sent));
    context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{
            .name = "paravirt.token_identity",
            .backend = B::kName,
            .claim = "every kick ends a sleep, is kept, is merged or stays unspent, and no wake-up is invented",
            .min_cpus = 2,
            .needs = paravirt::need_of<B>(),
            .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup token_identity_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(token_identity_group);

} // namespace spinkick::paravirt_tests
