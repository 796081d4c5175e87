// SPDX-License-Identifier: BSD-2-Clause
//
// lock.nesting: one CPU waits on five locks at once: in a task, in an interrupt that came meanwhile, in a higher one on
// top of that, in an NMI, and in a debug trap out of the NMI's wait. Four queue nodes, or waiting slots, serve the
// first four; the fifth must get its lock without one.
//
// The director holds all five locks. Two CPUs come after it, each with all five levels: the first becomes the pending
// CPU of each queued lock, so that the second has to queue. A level is begun when the one below it is seen to wait,
// which the back end tells: a lock calls relax() only after a look that found the lock held. Nothing depends on how
// long anything takes. The locks are released from the innermost outwards, each when the one before has been acquired;
// and then, in a second round, from the outermost inwards: the turn of each wait comes while others lie on top of it.
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

constexpr std::uint32_t kLevels = 5, kNmiLevel = 4; // task, interrupt, higher interrupt, NMI, debug trap
constexpr std::uint32_t kMostCpus = 16;
/// Spins of a waiter that is not to sleep, nor to give up the pending bit.
constexpr std::uint64_t kForEver = std::uint64_t{1} << 40;
constexpr std::uint64_t kFewSpins = 64;

/// Who waits where. The CPU itself writes, the director reads; levels count from 1, 0 is none.
struct alignas(64) Seat {
    std::atomic<std::uint32_t> level{0}; ///< that runs now
    std::atomic<std::uint32_t> waits{0}; ///< of the last look that found its lock held
};
constinit std::array<Seat, kMostCpus> seats{};

Seat& own_seat() noexcept { return seats[index(machine::this_cpu())]; }

/// A back end that says when a wait has begun, and is otherwise the one that it is made of. Few CPUs: each lock has its
/// static data once more for it.
template <class B>
struct Watched : B {
    using Unwatched = B;
    static constexpr std::uint32_t kMaxCpus = kMostCpus;
    static void relax() noexcept {
        auto& seat = own_seat();
        seat.waits.store(seat.level.load(std::memory_order_relaxed), std::memory_order_relaxed);
        B::relax();
    }
};

template <class List>
struct OnWatched;
template <class... Bs>
struct OnWatched<sync::TypeList<Bs...>> {
    using type = typename Filter<Excludes, sync::CrossLocks<Watched<paravirt::Native>, Watched<Bs>...>>::type;
};
using WatchedLocks = typename OnWatched<paravirt::SleepingBackends>::type;

struct Shared {
    std::array<std::atomic<std::uint32_t>, kLevels + 1> acquired{}; ///< by level
    std::atomic<std::uint32_t> turn{0};                             ///< worker that may begin its task level
    std::atomic<std::uint32_t> failed_level{0};                     ///< of failed_worker, which did not get there
    std::atomic<std::uint32_t> failed_worker{0};
    bool outermost_first = false;
    std::uint32_t first = 0;
    /// The fifth wait: a lock of the type under test, without its type, since a trap handler has no argument.
    void (*wait_at)(std::uint32_t level) noexcept = nullptr;
    std::uint64_t no_node_before = 0;
};
constinit Shared shared{};

/// Waits for a state, and gives up when the job is over.
template <class Condition>
bool await(Condition condition) noexcept {
    while (!condition()) {
        if (workers::over())
            return false;
        workers::progress();
        machine::yield();
    }
    return true;
}

void enter(std::uint32_t level) noexcept {
    auto& seat = own_seat();
    const auto below = seat.level.load(std::memory_order_relaxed);
    seat.level.store(level, std::memory_order_relaxed);
    shared.wait_at(level);
    seat.level.store(below, std::memory_order_relaxed);
}

constinit const machine::LevelHandlers kHandlers = {
    .interrupt = []() noexcept { enter(2); },
    .higher_interrupt = []() noexcept { enter(3); },
    .nmi = []() noexcept { enter(4); },
    .debug_trap = []() noexcept -> bool {
        if (own_seat().waits.load(std::memory_order_relaxed) != 4)
            return false;
        enter(5);
        return true;
    },
};
constexpr std::array kInterrupts = {machine::Level::interrupt, machine::Level::higher_interrupt, machine::Level::nmi};

template <class L>
inline constinit std::array<L, kLevels + 1> nested_locks{};

/// Has four nodes per CPU, and uses one in each wait. (pv-ticket has slots, for sleeps only: none in NMI.)
template <class L>
inline constexpr bool kHasNodes = requires {
    requires L::kHasNodes;
};

std::uint64_t count_of(std::uint32_t worker, sync::LockEvent event) noexcept {
    return machine::lock_event(workers::cpu_of(worker, shared.first), event);
}

/// Brings a worker to its fifth wait. False: it did not get there.
template <class L>
bool nest(std::uint32_t worker) noexcept {
    const auto cpu = workers::cpu_of(worker, shared.first);
    // At this level or above: the NMI's wait is soon followed by the debug trap's.
    const auto waits_at = [cpu](std::uint32_t level) {
        const clock::Deadline patience(milliseconds(200));
        bool prodded = false;
        return await([&] {
            if (!prodded && level == kNmiLevel && patience.passed()) {
                machine::prod(cpu);
                prodded = true;
                log("# CPU %u: the NMI did not arrive by itself within 200 ms", raw(cpu));
            }
            return seats[index(cpu)].waits.load(std::memory_order_relaxed) >= level;
        });
    };
    shared.turn.store(worker, std::memory_order_release); // the spin thresholds that it shall find
    for (std::uint32_t level = 1; level <= kLevels; ++level) {
        if (level > 1 && level < kLevels) // the trap comes out of the NMI by itself
            machine::interrupt_at(cpu, kInterrupts[level - 2]);
        if (!waits_at(level)) {
            shared.failed_worker.store(worker, std::memory_order_relaxed); // read when the job has ended
            shared.failed_level.store(level, std::memory_order_relaxed);
            return false;
        }
    }
    return true;
}

void set_spins(std::uint64_t spins) noexcept {
    sync::tuning.spin_threshold.store(spins, std::memory_order_relaxed); // published by `turn`
    sync::tuning.qspin_threshold.store(spins, std::memory_order_relaxed);
    sync::tuning.byte_timeout.store(spins, std::memory_order_relaxed);
}

/// Worker 0. Releases everything whatever happened, so that everybody ends.
template <class L>
void direct() noexcept {
    auto& locks = nested_locks<L>;
    for (std::uint32_t level = 1; level <= kLevels; ++level)
        locks[level].lock();
    set_spins(kForEver);
    bool all_wait = nest<L>(1);
    set_spins(kFewSpins);
    all_wait = all_wait && nest<L>(2);
    // Without a node it looks for one before it spins; with the pending bit in its way it may have spun before that.
    if (kHasNodes<L> && all_wait &&
        !await([] { return count_of(2, sync::LockEvent::lock_no_node) != shared.no_node_before; })) {
        shared.failed_worker.store(2, std::memory_order_relaxed);
        shared.failed_level.store(kLevels, std::memory_order_relaxed);
    }
    shared.turn.store(3, std::memory_order_release); // whoever has not begun has no need to
    for (std::uint32_t n = 1; n <= kLevels; ++n) {
        const auto level = shared.outermost_first ? n : kLevels + 1 - n;
        locks[level].unlock();
        if (!shared.outermost_first && all_wait)
            (void)await([level] { return shared.acquired[level].load(std::memory_order_relaxed) == 2; });
    }
}

template <class L>
void work(std::uint32_t worker, void*) {
    if (worker == 0)
        return direct<L>();
    // acquire: the thresholds.
    if (await([worker] { return shared.turn.load(std::memory_order_acquire) >= worker; }) &&
        shared.turn.load(std::memory_order_relaxed) == worker)
        enter(1);
}

template <class L>
void forget() noexcept {
    for (auto& lock : nested_locks<L>) {
        std::destroy_at(&lock);
        std::construct_at(&lock);
    }
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        if (const auto cpu = machine::online_cpu(n); index(cpu) < kMostCpus)
            reset_cpu<L>(cpu);
}

template <class L>
bool run_round(test::TestContext& context, bool outermost_first) noexcept {
    using sync::LockEvent;
    static constexpr const char* kNames[] = {"", "task", "interrupt", "higher interrupt", "NMI", "debug trap"};
    static constexpr std::array kNodes = {LockEvent::lock_use_node2, LockEvent::lock_use_node3,
                                          LockEvent::lock_use_node4, LockEvent::lock_no_node};
    const char* const order = outermost_first ? "outermost first" : "innermost first";
    for (auto& seat : seats)
        seat.level.store(0, std::memory_order_relaxed), seat.waits.store(0, std::memory_order_relaxed);
    for (auto& acquired : shared.acquired)
        acquired.store(0, std::memory_order_relaxed);
    shared.turn.store(0, std::memory_order_relaxed);
    shared.failed_level.store(0, std::memory_order_relaxed);
    shared.outermost_first = outermost_first;
    shared.wait_at = [](std::uint32_t level) noexcept {
        nested_locks<L>[level].lock();
        shared.acquired[level].fetch_add(1, std::memory_order_relaxed); // a count
        nested_locks<L>[level].unlock();
    };
    shared.no_node_before = count_of(2, LockEvent::lock_no_node);
    std::array<std::uint64_t, kNodes.size()> before{};
    for (std::size_t i = 0; i < kNodes.size(); ++i)
        before[i] = count_of(2, kNodes[i]);

    workers::Job job;
    job.body = work<L>;
    job.count = 3;
    job.first = shared.first;
    job.duration = seconds(20);
    const auto outcome = workers::run(job);
    if (const auto level = shared.failed_level.load(std::memory_order_relaxed); level != 0 && level <= kLevels)
        context.error("worker %u was not seen to wait in its %s", shared.failed_worker.load(std::memory_order_relaxed),
                      kNames[level]);
    if (!outcome.all_completed()) {
        context.fail(
            "%s: stall: %u of 3 workers had to be rescued; acquired twice each: %u %u %u %u %u", order, outcome.rescued,
            shared.acquired[1].load(std::memory_order_relaxed), shared.acquired[2].load(std::memory_order_relaxed),
            shared.acquired[3].load(std::memory_order_relaxed), shared.acquired[4].load(std::memory_order_relaxed),
            shared.acquired[5].load(std::memory_order_relaxed));
        forget<L>();
        return false;
    }
    if (context.status() != test::Status::none) {
        forget<L>();
        return false;
    }
    for (std::uint32_t level = 1; level <= kLevels; ++level)
        if (const auto acquired = shared.acquired[level].load(std::memory_order_relaxed); acquired != 2)
            context.fail("%s: the lock of the %s was acquired %u times, expected 2", order, kNames[level], acquired);
    if constexpr (kHasNodes<L>) {
        for (std::size_t i = 0; i < kNodes.size(); ++i)
            if (const auto counted = count_of(2, kNodes[i]) - before[i]; counted != 1)
                context.fail("%s: %s counted %llu times, expected once", order,
                             sync::kLockEventNames[static_cast<std::size_t>(kNodes[i])].data(),
                             static_cast<unsigned long long>(counted));
    }
    if constexpr (requires { L::at_rest(); })
        if (!L::at_rest())
            context.fail("%s: a node, a slot or a hash entry was not given back", order);
    for (std::uint32_t level = 1; level <= kLevels; ++level) {
        if (!nested_locks<L>[level].try_lock())
            context.fail("%s: the lock of the %s is not free afterwards", order, kNames[level]);
        else
            nested_locks<L>[level].unlock();
    }
    return context.status() == test::Status::none;
}

template <class L>
void run(test::TestContext& context) {
    shared.first = workers::available(1) >= 3 ? 1 : 0; // the boot CPU's timer watches
    for (std::uint32_t worker = 0; worker < 3; ++worker)
        if (const auto cpu = workers::cpu_of(worker, shared.first); index(cpu) >= kMostCpus)
            return context.skip("CPU %u: this test has room for %u", raw(cpu), kMostCpus);
    const EarlySleep restores_spins(kFewSpins);
    machine::set_level_handlers(kHandlers);
    if (run_round<L>(context, false) && run_round<L>(context, true))
        context.pass();
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.nesting",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim =
                              "waits of a task, an interrupt, a higher one, an NMI and a debug trap on one CPU all "
                              "get their locks",
                          .min_cpus = 3,
                          .needs = paravirt::need_of<typename L::Machine::Unwatched>(),
                          .run = run<L>};
    },
    WatchedLocks{});
constinit const test::TestGroup nesting_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(nesting_group);

} // namespace spinkick::lock_tests
