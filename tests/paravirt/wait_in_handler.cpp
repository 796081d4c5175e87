// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a handler that interrupts a wait and waits itself leaves the outer wait its kick. One vCPU waits with
// interrupts on; an interrupt comes at a random moment, before the halt, in it or behind it, and its handler waits for
// something else, with interrupts on or masked; sometimes an NMI comes on top. Each of the two waits gets exactly one
// kick, in either order: the kick of the outer one may arrive while the inner one sleeps, and must not be used up
// there. (paravirt.nested_wait_leaves_outer_kick opens the window between look and poll by force, on Xen.)
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

struct Cell {
    const char* name;
    machine::Level level;
    bool outer_first;
};
constexpr std::array kCells = {
    Cell{"handler with IF=1, outer wait kicked first", machine::Level::interrupt, true},
    Cell{"handler with IF=0, outer wait kicked first", machine::Level::higher_interrupt, true},
    Cell{"handler with IF=1, inner wait kicked first", machine::Level::interrupt, false},
    Cell{"handler with IF=0, inner wait kicked first", machine::Level::higher_interrupt, false},
};
constexpr std::uint32_t kRoundsPerCell = 8;

struct Shared {
    Turn asleep, inside, inner_go, outer_go, returned;
    std::atomic<bool> over{false};
    std::atomic<std::uint32_t> round{0};
    std::atomic<std::uint32_t> slept_in_nmi{0};
    std::uint64_t seed = 0;
};
constinit Shared shared{};

template <class B>
void inner_wait() noexcept {
    const auto round = shared.round.load(std::memory_order_acquire); // set before the interrupt was sent
    shared.inside.set(round);
    while (!shared.inner_go.reached(round)) {
        B::wait_unless([round] { return shared.inner_go.reached(round); });
        B::relax();
    }
}

template <class B>
void on_nmi() noexcept {
    if (B::wait_unless([] { return false; }) != sync::WaitEnd::not_slept)
        shared.slept_in_nmi.fetch_add(1, std::memory_order_relaxed); // a count
}

template <class B>
void sleeper() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `outer_go`
        shared.asleep.set(round);
        while (!shared.outer_go.reached(round) || !shared.inner_go.reached(round)) {
            B::wait_unless([round] { return shared.outer_go.reached(round); });
            B::relax();
        }
        shared.returned.set(round);
        workers::progress();
    }
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds(milliseconds(30), kRoundsPerCell * kCells.size());
    Random random(shared.seed);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        const auto& cell = kCells[(round - 1) % kCells.size()];
        begin_cell(cell.name);
        shared.asleep.await(round);
        spin_for(microseconds(random.below(100)));
        shared.round.store(round, std::memory_order_release);
        machine::interrupt_at(target, cell.level);
        shared.inside.await(round);
        spin_for(microseconds(random.below(60))); // from "about to halt" to "halted" in the handler
        if (random.below(2) == 0)
            machine::interrupt_at(target, machine::Level::nmi);
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        for (const bool outer : {cell.outer_first, !cell.outer_first}) {
            (outer ? shared.outer_go : shared.inner_go).set(round);
            B::kick(target);
            spin_for(microseconds(random.below(40)));
        }
        shared.returned.await(round);
        workers::progress();
    }
}

template <class B>
bool holds(test::TestContext& context) noexcept {
    for (auto* turn : {&shared.asleep, &shared.inside, &shared.inner_go, &shared.outer_go, &shared.returned})
        turn->reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.slept_in_nmi.store(0, std::memory_order_relaxed);
    shared.seed = context.seed();
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a wait in a handler ate the kick of the wait around it"))
        return false;
    if (const auto slept = shared.slept_in_nmi.load(std::memory_order_relaxed); slept != 0)
        context.fail("%u waits in NMI context slept", slept);
    return context.status() == test::Status::none;
}

template <class B>
void run(test::TestContext& context) {
    static constexpr machine::LevelHandlers kHandlers = {
        .interrupt = inner_wait<B>, .higher_interrupt = inner_wait<B>, .nmi = on_nmi<B>};
    machine::set_level_handlers(kHandlers);
    if (by_each_transport<B>([&context] { return holds<B>(context); }))
        context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.wait_in_handler_leaves_outer_kick",
                          .backend = B::kName,
                          .claim = "a wait in an interrupt handler does not use up the kick of the wait that it "
                                   "interrupted",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup wait_in_handler_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(wait_in_handler_group);

} // namespace spinkick::paravirt_tests
