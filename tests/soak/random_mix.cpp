// SPDX-License-Identifier: BSD-2-Clause
//
// soak.random_mix: hours of everything that the other tests do for moments. Each round draws from its seed a lock, how
// many CPUs contend for how many objects of it, thresholds, policies and the way kicks travel, how long sections and
// pauses are, and how often CPUs interrupt each other, with handlers that take a lock as well. After each round the
// machine must be as it was: nothing held, no node in use, every kick accounted for, every protected word whole.
//
// A round's seed is made from the one before. The line of a failure names the seed with which `seed=N soak=...` begins.
#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>

#include "arch/x86/paravirt/paravirt.hpp"
#include "kernel/options.hpp"
#include "kernel/splitmix64.hpp"
#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/counters.hpp"
#include "kernel/test/environment.hpp"
#include "tests/lock/lock_test.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::soak_tests {
namespace {

using paravirt_tests::Random;
using sync::LockEvent;

constexpr std::size_t kObjects = 4;
constexpr std::size_t kWords = 4;
constexpr Nanoseconds kHeartbeat = seconds(1);
constexpr std::uint64_t kDefaultSeconds = 10;

/// What the locks of a round protect; one more for the lock that interrupt handlers take.
struct alignas(64) Guarded {
    std::array<std::atomic<std::uint64_t>, kWords> words{}; ///< the same number, counted up by each holder
};

/// One choice of each kind.
struct Round {
    std::uint64_t seed = 0;
    std::uint32_t first = 0, count = 0; ///< workers
    std::uint32_t objects = 1;          ///< locks; the first is the hot one
    std::uint64_t hold_units = 0, think_units = 0;
    std::uint64_t spins = 0;
    std::uint32_t interrupt_every = 0, nmi_every = 0; ///< acquisitions between two; 0: never
    bool nests = false, masks = false, tries = false, handler_locks = false;
    Nanoseconds duration{};
};

struct Shared {
    Round round;
    workers::Barrier barrier{};
    std::array<Guarded, kObjects + 1> guarded{};
    std::atomic<std::uint64_t> acquisitions{0}, violations{0}, handled{0}, nmis{0};
    void (*handler)() noexcept = nullptr; ///< for the lock type of this round
};
constinit Shared shared{};

template <class L>
inline constinit std::array<stress::Traced<L>, kObjects + 1> locks{};

/// Counts a guarded record up; true if it was whole.
bool touch(Guarded& guarded) noexcept {
    // Relaxed, all of it: the lock alone has to order it.
    const auto value = guarded.words[0].load(std::memory_order_relaxed);
    bool whole = true;
    for (auto& word : guarded.words) {
        whole &= word.load(std::memory_order_relaxed) == value;
        word.store(value + 1, std::memory_order_relaxed);
    }
    return whole;
}

void count_handled(bool whole) noexcept {
    shared.handled.fetch_add(1, std::memory_order_relaxed); // summed when the workers have ended
    if (!whole)
        shared.violations.fetch_add(1, std::memory_order_relaxed);
}

/// In an interrupt: waits on a lock of its own while the code below may wait on another.
template <class L>
void handle() noexcept {
    if (!shared.round.handler_locks)
        return count_handled(true);
    locks<L>[kObjects].lock();
    const bool whole = touch(shared.guarded[kObjects]);
    locks<L>[kObjects].unlock();
    count_handled(whole);
}

/// One acquisition, in one of the ways that the round has.
template <class L>
std::uint64_t acquire(Random& random) noexcept {
    const auto& round = shared.round;
    const std::size_t outer = random.below(4) != 0 ? 0 : random.below(round.objects);
    auto& lock = locks<L>[outer];
    if (!round.tries || random.below(4) != 0)
        lock.lock();
    else if (!lock.try_lock())
        return 0;
    std::uint64_t taken = 1, broken = touch(shared.guarded[outer]) ? 0u : 1u;
    stress::work(random.below(round.hold_units + 1));
    if (round.nests && outer + 1 < round.objects && random.below(4) == 0) { // always upwards: no cycle
        const std::size_t inner = outer + 1 + random.below(round.objects - outer - 1);
        locks<L>[inner].lock();
        broken += touch(shared.guarded[inner]) ? 0u : 1u;
        locks<L>[inner].unlock();
        ++taken;
    }
    lock.unlock();
    if (broken != 0)
        shared.violations.fetch_add(broken, std::memory_order_relaxed); // read when the workers have ended
    return taken;
}

template <class L>
void work(std::uint32_t worker, void*) {
    using Machine = typename L::Machine;
    const auto& round = shared.round;
    Random random(round.seed ^ (std::uint64_t{worker} + 1) * 0x9e3779b97f4a7c15ull);
    // The boot CPU's timer watches, so it keeps its interrupts.
    const bool may_mask = round.masks && machine::this_cpu() != machine::online_cpu(0);
    if (!shared.barrier.wait(round.count))
        return;
    std::uint64_t acquisitions = 0;
    do {
        const bool masks = may_mask && random.below(4) == 0;
        typename Machine::InterruptState state{};
        if (masks)
            state = Machine::disable_interrupts();
        acquisitions += acquire<L>(random);
        if (masks)
            Machine::restore_interrupts(state);
        const auto victim = workers::cpu_of(static_cast<std::uint32_t>(random.below(round.count)), round.first);
        if (round.interrupt_every != 0 && random.below(round.interrupt_every) == 0)
            machine::interrupt_at(victim, machine::Level::interrupt);
        if (round.nmi_every != 0 && random.below(round.nmi_every) == 0)
            machine::interrupt_at(victim, machine::Level::nmi);
        stress::work(random.below(round.think_units + 1));
        workers::progress();
    } while (!workers::over());
    shared.acquisitions.fetch_add(acquisitions, std::memory_order_relaxed); // read when the workers have ended
}

/// A lock type as a row of the table.
struct Row {
    const char* lock;
    const char* backend;
    test::Backend needs;
    bool (*run)(test::TestContext&);
    void (*handler)() noexcept;
};

std::uint64_t unspent_kicks() noexcept {
    std::uint64_t sum = 0;
    paravirt::SleepingBackends::for_each([&]<class B>() { sum += sync::KickTokens<B>::unspent(); });
    return sum;
}

/// What must be the same after a round as before.
template <class L>
bool is_at_rest(test::TestContext& context) {
    for (std::size_t n = 0; n < locks<L>.size(); ++n) {
        if (!locks<L>[n].try_lock()) {
            context.fail("object %zu is not free afterwards, word 0x%llx", n,
                         static_cast<unsigned long long>(locks<L>[n].word()));
            return false;
        }
        locks<L>[n].unlock();
    }
    if constexpr (requires { L::at_rest(); }) {
        if (!L::at_rest()) {
            context.fail("a node, a slot or a hash entry was not given back");
            return false;
        }
    }
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        if (const auto cpu = machine::online_cpu(n); stress::lock_tracking.of(cpu).count() != 0) {
            context.fail("CPU %u still holds or wants %u locks", raw(cpu), stress::lock_tracking.of(cpu).count());
            return false;
        }
    return true;
}

template <class L>
void renew() noexcept {
    for (auto& lock : locks<L>) {
        std::destroy_at(&lock);
        std::construct_at(&lock);
    }
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        lock_tests::reset_cpu<L>(machine::online_cpu(n));
}

template <class L>
bool run_round(test::TestContext& context) {
    const auto& round = shared.round;
    for (auto& guarded : shared.guarded)
        for (auto& word : guarded.words)
            word.store(0, std::memory_order_relaxed); // no worker runs
    shared.acquisitions.store(0, std::memory_order_relaxed);
    shared.violations.store(0, std::memory_order_relaxed);
    shared.handled.store(0, std::memory_order_relaxed);
    shared.barrier.reset();
    const auto unspent = unspent_kicks();
    const auto before = counters::Snapshot::take();

    workers::Job job;
    job.body = work<L>;
    job.count = round.count;
    job.first = round.first;
    job.duration = round.duration;
    job.describe = [](void*) noexcept {
        for (std::uint32_t n = 0; n < shared.round.objects; ++n)
            stress::log_lock(&locks<L>[n], stress::kind_of<stress::Traced<L>>());
    };
    const auto outcome = workers::run(job);
    if (!outcome.all_completed()) {
        context.fail("stall (%s): CPU %u stood still, %u of %u workers had to be rescued",
                     workers::name(outcome.verdict.kind), raw(outcome.first_stalled), outcome.rescued, outcome.started);
        renew<L>();
        return false;
    }
    // An interrupt that is still on its way belongs to this round: a CPU that runs anything has taken it before.
    workers::Job quiet;
    quiet.body = [](std::uint32_t, void*) {};
    quiet.count = round.count;
    quiet.first = round.first;
    if (!workers::run(quiet).all_completed()) {
        context.fail("a CPU does not take work after its round");
        return false;
    }
    std::uint64_t counted = 0;
    for (const auto& guarded : shared.guarded)
        counted += guarded.words[0].load(std::memory_order_relaxed);
    auto expected = shared.acquisitions.load(std::memory_order_relaxed);
    if (round.handler_locks)
        expected += shared.handled.load(std::memory_order_relaxed);
    if (const auto violations = shared.violations.load(std::memory_order_relaxed);
        violations != 0 || counted != expected) {
        context.fail("%llu records were not whole; %llu acquisitions left a count of %llu",
                     static_cast<unsigned long long>(violations), static_cast<unsigned long long>(expected),
                     static_cast<unsigned long long>(counted));
        return false;
    }
    const auto events = counters::Snapshot::take().since(before);
    const auto accounted = events[LockEvent::token_ended] + events[LockEvent::token_kept] +
                           events[LockEvent::token_merged] + (unspent_kicks() - unspent); // the last may be negative
    if (events[LockEvent::kick_stats] != accounted) {
        context.fail("%llu kicks sent, %llu accounted for",
                     static_cast<unsigned long long>(events[LockEvent::kick_stats]),
                     static_cast<unsigned long long>(accounted));
        return false;
    }
    if (events[LockEvent::lock_corrupt] != 0) {
        context.fail("%llu corrupt lock words", static_cast<unsigned long long>(events[LockEvent::lock_corrupt]));
        return false;
    }
    return is_at_rest<L>(context);
}

constexpr auto kRows = lock_tests::table_of(
    []<class L>() {
        return Row{L::kName, L::Machine::kName, paravirt::need_of<typename L::Machine>(), run_round<L>, handle<L>};
    },
    lock_tests::ExcludingLocks{});

template <class T, std::size_t N>
T one_of(Random& random, const T (&choices)[N]) noexcept {
    return choices[random.below(N)];
}

/// Draws a round. Returns its row.
const Row& draw(std::uint64_t seed, bool nmis_allowed) noexcept {
    Random random(seed);
    for (int warm = 0; warm < 8; ++warm) // neighbouring seeds begin alike
        (void)random.below(2);
    auto& round = shared.round;
    round = {};
    round.seed = seed;
    const Row* row = nullptr;
    do
        row = &kRows[random.below(kRows.size())];
    while (!test::backend_unavailable_reason(row->needs).empty()); // native ones are always there
    const auto cpus = workers::available();
    const auto most = std::min(cpus, lock_tests::kMostWorkers);
    round.count = 2 + static_cast<std::uint32_t>(random.below(most - 1));
    round.first = static_cast<std::uint32_t>(random.below(cpus - round.count + 1));
    round.objects = 1 + static_cast<std::uint32_t>(random.below(kObjects));
    round.hold_units = stress::units_for(microseconds(one_of<std::uint64_t>(random, {1, 2, 10})));
    round.think_units = stress::units_for(microseconds(one_of<std::uint64_t>(random, {1, 2, 10, 50})));
    round.interrupt_every = one_of<std::uint32_t>(random, {0, 16, 64, 1024});
    round.nmi_every = nmis_allowed ? one_of<std::uint32_t>(random, {0, 0, 256, 2048}) : 0;
    round.nests = random.below(2) != 0;
    round.masks = random.below(2) != 0;
    round.tries = random.below(2) != 0;
    round.handler_locks = random.below(2) != 0;
    round.duration = milliseconds(40 + random.below(160));

    auto& tuning = sync::tuning; // relaxed: start_work() publishes them
    round.spins = one_of<std::uint64_t>(random, {0, 1, 16, 256, 4096, 32768});
    tuning.spin_threshold.store(round.spins, std::memory_order_relaxed);
    tuning.qspin_threshold.store(round.spins / 2, std::memory_order_relaxed);
    tuning.byte_timeout.store(round.spins / 32, std::memory_order_relaxed);
    using sync::RelaxHint, sync::Stealing, sync::WaitEarly, sync::YieldMethod;
    tuning.wait_early.store(one_of(random, {WaitEarly::off, WaitEarly::state, WaitEarly::preempted}),
                            std::memory_order_relaxed);
    tuning.stealing.store(one_of(random, {Stealing::off, Stealing::entry, Stealing::on}), std::memory_order_relaxed);
    tuning.kick_holder.store(random.below(2) != 0, std::memory_order_relaxed);
    tuning.relax_hint.store(one_of(random, {RelaxHint::pause, RelaxHint::pause, RelaxHint::lfence, RelaxHint::none}),
                            std::memory_order_relaxed);
    tuning.directed_yield.store(one_of(random, {YieldMethod::off, YieldMethod::flags, YieldMethod::bitmap}),
                                std::memory_order_relaxed);
    if (const auto ways = paravirt::kick_transports(row->needs); ways != 0)
        paravirt::use_kick_transport(row->needs, static_cast<std::uint32_t>(random.below(ways)));
    return *row;
}

void run(test::TestContext& context) {
    const auto& line = options::command_line();
    const auto length = seconds(line.soak_s == 0 ? kDefaultSeconds : line.soak_s);
    // docs/known-deviations.md: an NMI may leave a vCPU standing there, and says nothing about a lock.
    const bool is_xen = test::backend_unavailable_reason(test::Backend::xen).empty();
    const bool nmis_allowed = line.nmis && !is_xen;
    if (!nmis_allowed)
        log("# soak: no NMIs among the noise: %s", is_xen ? "Xen may leave a vCPU at the IRET of one" : "nmis=off");
    const lock_tests::SavedSwitches saved(1); // each round draws its own
    machine::set_level_handlers({.interrupt = []() noexcept { shared.handler(); },
                                 .higher_interrupt = []() noexcept { count_handled(true); },
                                 .nmi = []() noexcept { shared.nmis.fetch_add(1, std::memory_order_relaxed); },
                                 .debug_trap = nullptr});
    const auto begin = clock::now();
    auto beat = begin + kHeartbeat;
    std::uint64_t seed = line.seed, rounds = 0, acquisitions = 0;
    counters::Reader counts;
    (void)counts.reset();
    while (clock::now() - begin < length) {
        const auto& row = draw(seed, nmis_allowed);
        shared.handler = row.handler; // the workers of the last round have ended
        const bool good = row.run(context);
        ++rounds;
        acquisitions += shared.acquisitions.load(std::memory_order_relaxed);
        const auto now = clock::now();
        if (!good || now >= beat) {
            beat = now + kHeartbeat;
            const auto& round = shared.round;
            const auto events = counts.read();
            log("# soak: %llu of %llu s, round %llu seed=%llu: %s/%s, CPUs %u to %u, %u objects, spins %llu; so far "
                "%llu acquisitions, %llu halts, %llu kicks, %llu NMIs",
                static_cast<unsigned long long>((now - begin).value / 1'000'000'000),
                static_cast<unsigned long long>(length.value / 1'000'000'000), static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(seed), row.lock, row.backend, round.first,
                round.first + round.count - 1, round.objects, static_cast<unsigned long long>(round.spins),
                static_cast<unsigned long long>(acquisitions),
                static_cast<unsigned long long>(events[LockEvent::hibernate_stats]),
                static_cast<unsigned long long>(events[LockEvent::kick_stats]),
                static_cast<unsigned long long>(shared.nmis.load(std::memory_order_relaxed)));
        }
        if (!good) {
            log("# soak: to begin with this round: seed=%llu soak=%llus", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(length.value / 1'000'000'000));
            return; // context has the verdict
        }
        seed = splitmix64(seed);
    }
    if (acquisitions == 0)
        return context.error("%llu rounds and no acquisition", static_cast<unsigned long long>(rounds));
    log("# soak: %llu rounds, %llu acquisitions, %llu interrupts with a handler in the last round",
        static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(acquisitions),
        static_cast<unsigned long long>(shared.handled.load(std::memory_order_relaxed)));
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "soak.random_mix",
               .claim = "a random mix of locks, loads, thresholds, nesting and noise leaves the machine as it was",
               .min_cpus = 2,
               .run = run,
               .on_request = true}};
constinit const test::TestGroup soak_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(soak_group);

} // namespace spinkick::soak_tests
