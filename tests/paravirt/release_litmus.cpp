// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: the store-buffer litmus between a release and a sleep. Each side stores, and then looks at what the other
// one stores:
//
//   sleeper:  asleep = 1 ;  barrier ;  released?  no: sleep          releaser:  released = 1 ;  barrier ;  asleep? kick
//
// Without a full barrier on either side both may see the old value: the sleeper sleeps, and nobody kicks it. Both sides
// record what they saw, so that such a round is known for certain and at once, by no time limit. The barrier is what
// the back ends ask of their callers, a seq_cst exchange (kernel/sync/concepts.hpp). In the control, which runs on
// request, the releaser has none, and rounds must be missed: a store buffer is there, and the test sees it.
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

enum class Barrier : std::uint8_t { full, none };

struct alignas(64) Line {
    std::atomic<std::uint32_t> value{0};
};

struct Shared {
    Turn ready, start, looked, returned;
    Line asleep, released, barrier;
    std::array<Line, 24> noise; ///< stored to by both sides: the release has to wait behind stores that take long
    std::atomic<bool> sleeper_saw{false};
    std::atomic<bool> over{false};
    std::uint64_t seed = 0;
    std::uint32_t rounds = 0, missed = 0, seen = 0;
};
constinit Shared shared{};

void spin(std::uint64_t spins) noexcept {
    while (spins-- > 0)
        machine::relax();
}

/// A halt and a kick cost some thousand times what the race does: most rounds look and do not sleep.
constexpr std::uint32_t kSleepsEvery = 32;
constexpr bool sleeps(std::uint32_t round) noexcept { return round % kSleepsEvery == 0; }

/// How long the releaser waits before its store. Whoever was late is given a head start the next time, so that the two
/// keep meeting, whatever either side takes.
class Lead {
  public:
    [[nodiscard]] std::uint64_t spins() const noexcept { return spins_; }
    void releaser_was_first(bool first, Random& random) noexcept {
        const auto step = 1 + random.below(kMostStep);
        if (first)
            spins_ = spins_ + step < kMost ? spins_ + step : kMost;
        else
            spins_ = spins_ > step ? spins_ - step : 0;
    }

  private:
    static constexpr std::uint64_t kMostStep = 16, kMost = 4096;
    std::uint64_t spins_ = 0;
};

/// Fills the store buffer, so that the store after it is seen late by the other side, and the load behind that early.
void fill_store_buffer(std::uint32_t round) noexcept {
    for (auto& line : shared.noise)
        line.value.store(round, std::memory_order_relaxed); // nobody reads it
}

template <class B>
void sleeper() noexcept {
    Random random(shared.seed + 1);
    const auto state = B::disable_interrupts();
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `start`
        shared.ready.set(round);
        shared.start.await(round);
        fill_store_buffer(round);
        spin(random.below(4));
        shared.asleep.value.exchange(round, std::memory_order_seq_cst); // the sleeper's full barrier
        const auto look = [round] {
            const bool released = shared.released.value.load(std::memory_order_acquire) == round;
            shared.sleeper_saw.store(released, std::memory_order_relaxed); // published by `looked`
            shared.looked.set(round);
            return released;
        };
        if (sleeps(round))
            B::wait_unless(look);
        else
            (void)look();
        shared.returned.set(round);
        workers::progress();
    }
    B::restore_interrupts(state);
}

template <class B, Barrier With>
void releaser() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    constexpr bool kIsControl = With == Barrier::none;
    const Rounds rounds(kIsControl ? seconds(5) : milliseconds(30), 16 * kSleepsEvery,
                        kIsControl ? 1u << 24 : 1u << 16);
    Random random(shared.seed);
    Lead lead;
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.ready.await(round);
        if (rounds.is_last(round) || (kIsControl && shared.missed != 0))
            shared.over.store(true, std::memory_order_relaxed);
        shared.start.set(round);
        spin(lead.spins());
        fill_store_buffer(round);
        shared.released.value.store(round, std::memory_order_release);
        if constexpr (With == Barrier::full)
            shared.barrier.value.exchange(round, std::memory_order_seq_cst);
        const bool asleep = shared.asleep.value.load(std::memory_order_relaxed) == round;
        bool missed = false;
        if (!asleep) {
            shared.looked.await(round);
            missed = !shared.sleeper_saw.load(std::memory_order_relaxed);
        }
        if (sleeps(round) && (asleep || missed))
            B::kick(target); // if it was missed, so that the round ends nevertheless
        shared.seen += asleep ? 1u : 0u;
        shared.missed += missed ? 1u : 0u;
        lead.releaser_was_first(!asleep, random);
        shared.returned.await(round);
        shared.rounds = round;
        workers::progress();
    }
}

template <class B, Barrier With>
bool try_rounds(test::TestContext& context) noexcept {
    for (auto* turn : {&shared.ready, &shared.start, &shared.looked, &shared.returned})
        turn->reset();
    for (auto* line : {&shared.asleep, &shared.released, &shared.barrier})
        line->value.store(0, std::memory_order_relaxed);
    shared.over.store(false, std::memory_order_relaxed);
    shared.seed = context.seed();
    shared.rounds = shared.missed = shared.seen = 0;
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? releaser<B, With>() : sleeper<B>(); };
    return run_workers<B>(context, 2, body, nullptr, "a sleeper that was seen and kicked did not wake");
}

template <class B>
void run(test::TestContext& context) {
    const bool holds = by_each_transport<B>([&context] {
        if (!try_rounds<B, Barrier::full>(context))
            return false;
        if (shared.missed != 0)
            context.fail("in %u of %u rounds the releaser saw no sleeper, and the sleeper no release", shared.missed,
                         shared.rounds);
        else if (shared.seen == 0 || shared.seen == shared.rounds)
            context.skip("the releaser was first in %u of %u rounds: the two vCPUs do not run at the same time",
                         shared.rounds - shared.seen, shared.rounds);
        return context.status() == test::Status::none;
    });
    if (holds)
        context.pass();
}

template <class B>
void run_without_barrier(test::TestContext& context) {
    if (!try_rounds<B, Barrier::none>(context))
        return;
    if (shared.missed == 0)
        return context.error("no round of %u was missed without a barrier: the litmus sees nothing", shared.rounds);
    context.pass();
}

constexpr auto kTests = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.release_then_look_misses_no_sleeper",
                          .backend = B::kName,
                          .claim = "with a full barrier between release and look, and between flag and sleep, nobody "
                                   "sleeps unseen",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run<B>};
    },
    paravirt::SleepingBackends{});
constexpr auto kControls = tests_on(
    []<class B>() {
        return test::Test{.name = "paravirt.missing_barrier_is_seen",
                          .backend = B::kName,
                          .claim = "without a barrier between release and look a sleeper goes unseen",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<B>(),
                          .run = run_without_barrier<B>,
                          .on_request = true};
    },
    paravirt::SleepingBackends{});
constinit const test::TestGroup release_litmus_group{kTests};
constinit const test::TestGroup missing_barrier_group{kControls};

} // namespace

SPINKICK_REGISTER_TESTS(release_litmus_group);
SPINKICK_REGISTER_TESTS(missing_barrier_group);

} // namespace spinkick::paravirt_tests
