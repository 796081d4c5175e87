// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: kicks and interrupts do not get into each other's way. What must end a halt does: a kick whatever the mask
// is, a fixed IPI with interrupts on, an NMI always. What must not, does not: a fixed IPI with interrupts masked stays
// requested until they are on again. And of each interrupt that was sent, with a kick around it or not, the handler
// runs once. Fixed IPI and NMI alone are the controls: where they fail, the kick is not to blame.
//
// Xen's poll differs by design: an interrupt ends it with the mask set as well, and one that comes between the look and
// the poll does not end it. For a PV guest that is so of an NMI too, and of those behind it (docs/known-deviations.md).
#include <algorithm>
#include <type_traits>

#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/xen_pv/active.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

enum class Signal : std::uint8_t { none, kick, interrupt, nmi };

struct Cell {
    const char* name;
    bool masked;
    Signal first, second;
};
constexpr std::array kCells = {
    Cell{"fixed IPI alone, IF=1", false, Signal::interrupt, Signal::none},
    Cell{"fixed IPI alone, IF=0", true, Signal::interrupt, Signal::none},
    Cell{"NMI alone, IF=1", false, Signal::nmi, Signal::none},
    Cell{"NMI alone, IF=0", true, Signal::nmi, Signal::none},
    Cell{"kick, then fixed IPI, IF=1", false, Signal::kick, Signal::interrupt},
    Cell{"kick, then fixed IPI, IF=0", true, Signal::kick, Signal::interrupt},
    Cell{"fixed IPI, then kick, IF=1", false, Signal::interrupt, Signal::kick},
    Cell{"fixed IPI, then kick, IF=0", true, Signal::interrupt, Signal::kick},
};
constexpr std::uint32_t kRoundsPerCell = 4;

constexpr bool is_alone(const Cell& cell) noexcept { return cell.second == Signal::none; }
/// The interrupt that must not end the halt.
constexpr bool must_stay(const Cell& cell) noexcept {
    return is_alone(cell) && cell.first == Signal::interrupt && cell.masked;
}

constexpr Nanoseconds kStays = microseconds(300); ///< a halt that an interrupt must not end is watched for this long
constexpr Nanoseconds kLimit = seconds(1);        ///< for what must come; a loaded host may leave a vCPU out for long
constexpr Nanoseconds kAgain = milliseconds(2);   ///< an NMI may have come before the halt: then another one

struct Shared {
    Turn asleep, released, woke, returned, counted;
    std::atomic<bool> over{false};
    std::atomic<std::uint32_t> handled{0};
    std::atomic<std::uint32_t> nmis{0}; ///< handlers that have run
    Stood stood;
    std::uint64_t seed = 0;
    std::uint32_t sent = 0, sent_nmis = 0;
    std::array<std::uint32_t, kCells.size()> rounds{}, deaf{}, early{};
    std::uint32_t lost = 0, doubled = 0; ///< interrupts
    const char* lost_in = "";            ///< cell of the first one
    machine::CpuState lost_at;           ///< its target then
};
constinit Shared shared{};

constexpr std::size_t cell_of(std::uint32_t round) noexcept { return (round - 1) % kCells.size(); }

template <class B>
void sleeper() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `released`
        const auto state = B::disable_interrupts();
        if (!kCells[cell_of(round)].masked)
            B::restore_interrupts(state);
        const auto released = [round] { return shared.released.reached(round); };
        shared.asleep.set(round);
        do {
            B::wait_unless(released);
            shared.woke.set(round);
            B::relax();
        } while (!released());
        B::restore_interrupts(state); // a fixed IPI that waited is taken here
        shared.returned.set(round);
        shared.counted.await(round); // with interrupts on: one may still be under way
        workers::progress();
    }
}

template <class B>
void send(Signal signal, CpuId target) noexcept {
    switch (signal) {
    case Signal::none:
        break;
    case Signal::kick:
        B::kick(target);
        break;
    case Signal::interrupt:
        ++shared.sent;
        machine::interrupt_at(target, machine::Level::higher_interrupt);
        break;
    case Signal::nmi:
        ++shared.sent_nmis;
        machine::interrupt_at(target, machine::Level::nmi);
        break;
    }
}

/// The halt has to end by this signal alone. If it does not: counted, and ended by a kick.
template <class B>
void expect_to_end(std::size_t cell, std::uint32_t round, CpuId target) noexcept {
    constexpr bool kHasGap = std::is_same_v<B, paravirt::Xen>;
    const bool nmi_has_gap = kHasGap && x86::xen_pv::is_active();
    bool ended = false;
    if (kCells[cell].first == Signal::interrupt) {
        ended = reached_within(shared.returned, round, kHasGap ? kAgain : kLimit);
        shared.deaf[cell] += !ended && !kHasGap ? 1u : 0u;
    } else {
        const clock::Deadline deadline(nmi_has_gap ? kAgain : kLimit);
        // Each one when the handler of the one before has run: on Xen, emulated, a vCPU may stand between two.
        while (!(ended = reached_within(shared.returned, round, kAgain)) && !deadline.passed())
            if (shared.nmis.load(std::memory_order_relaxed) >= shared.sent_nmis) // a count
                send<B>(Signal::nmi, target);
        shared.deaf[cell] += !ended && !nmi_has_gap ? 1u : 0u;
    }
    if (!ended)
        B::kick(target);
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds(milliseconds(20), kRoundsPerCell * kCells.size());
    Random random(shared.seed);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        const auto i = cell_of(round);
        const auto& cell = kCells[i];
        begin_cell(cell.name);
        shared.asleep.await(round);
        shared.sent_nmis = shared.nmis.load(std::memory_order_relaxed); // the next NMI counts from here
        spin_for(microseconds(random.below(150)));                      // from "about to halt" to "long halted"
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        if (must_stay(cell)) {
            send<B>(cell.first, target);
            if (reached_within(shared.woke, round, kStays))
                ++shared.early[i];
            shared.released.set(round);
            B::kick(target);
        } else {
            shared.released.set(round);
            send<B>(cell.first, target);
            if (random.below(2) == 0)
                spin_for(microseconds(random.below(10)));
            send<B>(cell.second, target);
            if (is_alone(cell))
                expect_to_end<B>(i, round, target);
        }
        if (shared.stood.await(shared.returned, round, target) && is_alone(cell))
            shared.deaf[i] -= std::min(shared.deaf[i], 1u); // it was not the signal
        ++shared.rounds[i];
        // relaxed: a count of the other vCPU's handler, which may still have to run.
        const clock::Deadline deadline(kLimit);
        while (shared.handled.load(std::memory_order_relaxed) < shared.sent && !deadline.passed())
            machine::relax();
        const auto handled = shared.handled.load(std::memory_order_relaxed);
        if (handled < shared.sent && shared.lost++ == 0) {
            shared.lost_in = cell.name;
            shared.lost_at = machine::inspect(target, kLimit);
        }
        shared.doubled += handled > shared.sent ? 1u : 0u;
        shared.sent = handled; // the next round counts from here
        shared.counted.set(round);
        workers::progress();
    }
}

template <class B>
bool holds(test::TestContext& context) noexcept {
    for (auto* turn : {&shared.asleep, &shared.released, &shared.woke, &shared.returned, &shared.counted})
        turn->reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.handled.store(0, std::memory_order_relaxed);
    shared.nmis.store(0, std::memory_order_relaxed);
    shared.stood = {};
    shared.seed = context.seed();
    shared.sent = shared.lost = shared.doubled = 0;
    shared.rounds.fill(0), shared.deaf.fill(0), shared.early.fill(0);
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a halt did not end"))
        return false;
    // Xen also ends a HLT by an interrupt that TPR holds back, as the ipi back end's mask does.
    const bool on_xen = paravirt::hypervisors().find(paravirt::HypervisorKind::xen) != nullptr;
    for (std::size_t i = 0; i < kCells.size(); ++i) {
        if (shared.deaf[i] != 0)
            context.fail("%s does not end a halt: %u of %u", kCells[i].name, shared.deaf[i], shared.rounds[i]);
        // A sleep may end for no reason now and then.
        if (!on_xen && shared.early[i] * 2 > shared.rounds[i])
            context.fail("%s ends a halt: %u of %u", kCells[i].name, shared.early[i], shared.rounds[i]);
    }
    if (const auto& at = shared.lost_at; shared.lost != 0)
        context.fail("%s %u interrupts were lost, first in: %s; IRR 0x%llx, ISR 0x%llx, TPR 0x%llx, IF=%u",
                     trial.transport, shared.lost, shared.lost_in, static_cast<unsigned long long>(at.requested),
                     static_cast<unsigned long long>(at.in_service), static_cast<unsigned long long>(at.tpr),
                     at.interrupts_on ? 1u : 0u);
    if (shared.doubled != 0)
        context.fail("%s %u interrupts were taken twice", trial.transport, shared.doubled);
    shared.stood.report(context);
    return context.status() == test::Status::none;
}

template <class B>
void run(test::TestContext& context) {
    static constexpr machine::LevelHandlers kHandlers = {
        .interrupt = []() noexcept {},
        .higher_interrupt = []() noexcept { shared.handled.fetch_add(1, std::memory_order_relaxed); }, // a count
        .nmi = []() noexcept { shared.nmis.fetch_add(1, std::memory_order_relaxed); },
    };
    machine::set_level_handlers(kHandlers);
    if (by_each_transport<B>([&context] { return holds<B>(context); }))
        context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.kick_and_interrupt",
                          .backend = B::kName,
                          .claim = "a halt ends by what must end it and by nothing else, and neither a kick nor an "
                                   "interrupt swallows the other",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup kick_and_interrupt_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kick_and_interrupt_group);

} // namespace spinkick::paravirt_tests
