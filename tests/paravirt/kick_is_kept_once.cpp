// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a kick ends one halt and not the one after it, whoever sent it and whatever the target did: it ran, it was
// halted, it kicked itself before its last look or behind it. The first halt of a round must end by that kick; the
// second one must last until somebody ends it, by a kick or, where interrupts are on, by a fixed IPI. A kick of a
// halted vCPU that is remembered beyond the halt shows here, and so does one of a running vCPU that is not remembered.
// (paravirt.two_kicks_wake_once has the case of two.)
#include <type_traits>

#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

enum class From : std::uint8_t { running, halted, itself, behind_look };

struct Cell {
    const char* name;
    From from;
    bool masked;
};
constexpr std::array kCells = {
    Cell{"kick of a vCPU that runs, IF=0", From::running, true},
    Cell{"kick of a vCPU that runs, IF=1", From::running, false},
    Cell{"kick of a halted vCPU, IF=0", From::halted, true},
    Cell{"kick of a halted vCPU, IF=1", From::halted, false},
    Cell{"kick of itself, IF=0", From::itself, true},
    Cell{"kick of itself, IF=1", From::itself, false},
    Cell{"kick of itself between look and halt, IF=0", From::behind_look, true},
    Cell{"kick of itself between look and halt, IF=1", From::behind_look, false},
};
constexpr std::uint32_t kRoundsPerCell = 4;

constexpr Nanoseconds kAsleep = microseconds(150); ///< whoever said that it goes to sleep is asleep by then, mostly
constexpr Nanoseconds kSettle = microseconds(400); ///< a second sleep that ends by itself has ended by then

struct Shared {
    Turn ready, kicked, asleep, released, sent, returned;
    std::atomic<bool> over{false};
    std::array<std::uint32_t, kCells.size()> rounds{}, early{};
};
constinit Shared shared{};

constexpr std::size_t cell_of(std::uint32_t round) noexcept { return (round - 1) % kCells.size(); }

template <class B>
void first_sleep(From from, std::uint32_t round) noexcept {
    const auto never = [] { return false; };
    switch (from) {
    case From::running:
        shared.kicked.await(round);
        B::wait_unless(never);
        break;
    case From::halted:
        B::wait_unless(never);
        break;
    case From::itself:
        B::kick(B::this_cpu());
        B::wait_unless(never);
        break;
    case From::behind_look:
        B::wait_unless([] {
            B::kick(B::this_cpu());
            return false; // what was true before the kick
        });
        break;
    }
}

template <class B>
void sleeper() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `released`
        const auto& cell = kCells[cell_of(round)];
        const auto state = B::disable_interrupts();
        if (!cell.masked)
            B::restore_interrupts(state);
        shared.ready.set(round);
        first_sleep<B>(cell.from, round);
        shared.asleep.set(round);
        B::wait_unless([round] { return shared.released.reached(round); });
        ++shared.rounds[cell_of(round)];
        if (!shared.released.reached(round))
            ++shared.early[cell_of(round)];
        while (!shared.released.reached(round)) {
            B::wait_unless([round] { return shared.released.reached(round); });
            B::relax(); // a wait that does not sleep must not drown the others
        }
        B::restore_interrupts(state);
        // What released this round may have come too late to end a sleep, on a slow host. A kick is a flag: with one of
        // its own on top, a wait takes both, and the next round does not begin with the kick of this one.
        shared.sent.await(round);
        B::kick(B::this_cpu());
        B::wait_unless([] { return false; });
        shared.returned.set(round);
        workers::progress();
    }
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds(milliseconds(20), kRoundsPerCell * kCells.size());
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        const auto& cell = kCells[cell_of(round)];
        begin_cell(cell.name);
        shared.ready.await(round);
        if (cell.from == From::halted)
            spin_for(kAsleep);
        if (cell.from == From::running || cell.from == From::halted)
            B::kick(target);
        shared.kicked.set(round);
        shared.asleep.await(round);
        spin_for(kSettle);
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        shared.released.set(round);
        // Xen's waiter may take an interrupt between its look and the poll, which then does not end: only a kick ends
        // it.
        const bool by_interrupt = !std::is_same_v<B, paravirt::Xen> && !cell.masked && round / kCells.size() % 2 == 1;
        if (by_interrupt)
            machine::send_test_interrupt(target);
        else
            B::kick(target);
        shared.sent.set(round);
        shared.returned.await(round);
        workers::progress();
    }
}

template <class B>
bool holds(test::TestContext& context) noexcept {
    shared.ready.reset(), shared.kicked.reset(), shared.asleep.reset(), shared.released.reset();
    shared.sent.reset(), shared.returned.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.rounds.fill(0), shared.early.fill(0);
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a halt did not end"))
        return false;
    // A sleep may end for no reason now and then; a kick that ends two does so in every round.
    for (std::size_t i = 0; i < kCells.size(); ++i) {
        if (shared.early[i] * 2 <= shared.rounds[i])
            continue;
        context.fail("%s %s ended a second halt in %u of %u rounds", trial.transport, kCells[i].name, shared.early[i],
                     shared.rounds[i]);
        return false;
    }
    return true;
}

template <class B>
void run(test::TestContext& context) {
    machine::set_test_interrupt([]() noexcept {});
    if (by_each_transport<B>([&context] { return holds<B>(context); }))
        context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.kick_is_kept_for_one_halt",
                          .backend = B::kName,
                          .claim = "a kick ends exactly one halt: of a running vCPU the next one, of a halted vCPU the "
                                   "present one",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup kick_is_kept_once_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kick_is_kept_once_group);

} // namespace spinkick::paravirt_tests
