// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a wait inside a wait leaves the outer one its kick. On Xen a waiter may be interrupted between its last
// look and the poll, and the handler may wait on something else. Should that nested wait clear the pending port, the
// outer poll sleeps although it was kicked. The window is a few instructions wide; the test opens it by waiting inside
// the outer wait's own look, which is the same as an interrupt right behind it. Other back ends mask interrupts from
// the look to the halt, and have no such window.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Xen;

struct Shared {
    Turn outer_looked, outer_go, inner_go, returned;
    std::atomic<bool> over{false};
    std::atomic<std::uint32_t> nested{0};
};
constinit Shared shared{};

void sleeper() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `outer_go`
        bool first = true;
        const auto look = [round, &first] {
            const bool go = shared.outer_go.reached(round);
            if (!first || go)
                return go;
            first = false;
            shared.outer_looked.set(round);
            shared.nested.fetch_add(1, std::memory_order_relaxed); // a count
            while (!shared.inner_go.reached(round)) {
                B::wait_unless([round] { return shared.inner_go.reached(round); });
                B::relax();
            }
            return go; // the answer from before the interruption
        };
        while (!shared.outer_go.reached(round)) {
            B::wait_unless(look);
            B::relax();
        }
        shared.returned.set(round);
        workers::progress();
    }
}

void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds;
    Random random(1);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.outer_looked.await(round);
        spin_for(microseconds(random.below(100)));
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        shared.outer_go.set(round);
        B::kick(target); // the one kick that the outer wait gets
        spin_for(microseconds(random.below(100)));
        // No second kick: the pending port keeps the nested wait from sleeping until it sees this.
        shared.inner_go.set(round);
        shared.returned.await(round);
        workers::progress();
    }
}

void run(test::TestContext& context) {
    shared.outer_looked.reset(), shared.outer_go.reset(), shared.inner_go.reset(), shared.returned.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.nested.store(0, std::memory_order_relaxed);
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker() : sleeper(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a nested wait ate the kick of the wait around it"))
        return;
    if (shared.nested.load(std::memory_order_relaxed) == 0)
        return context.error("no wait was nested: the claim was not tried");
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.nested_wait_leaves_outer_kick",
               .backend = B::kName,
               .claim = "a wait that interrupts a wait does not take the kick of the outer one",
               .min_cpus = 2,
               .needs = paravirt::need_of<B>(),
               .run = run},
};
constinit const test::TestGroup nested_wait_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(nested_wait_group);

} // namespace spinkick::paravirt_tests
