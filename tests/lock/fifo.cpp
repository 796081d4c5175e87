// SPDX-License-Identifier: BSD-2-Clause
//
// lock.fifo: a lock that claims it serves in the order of arrival. Arrivals are made one after the other, behind a
// holder: a waiter starts when the lock's word shows the one before it. And selftest.unfair_order_is_seen: a lock that
// claims it and serves every two waiters in swapped order is reported by the same judge.
#include <array>
#include <atomic>
#include <cstdint>

#include "kernel/stress/traced_lock_code.hpp" // of a lock of its own
#include "kernel/sync/lock_word.hpp"
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

constexpr std::uint32_t kRounds = 5;
constexpr std::uint64_t kFewSpins = 64;
constexpr std::uint32_t kNobody = ~std::uint32_t{0};
/// Where arrivals show, in the word of every lock that claims FIFO. Not in bits 7:0, where a mark of sleepers may come
/// at any time.
constexpr std::uint64_t kArrivals = 0xffff'ff00;

struct Queue {
    workers::Barrier barrier{};
    std::atomic<std::uint32_t> next{0}; ///< the last waiter that may arrive; kNobody: no need to wait for the turn
    std::atomic<std::uint32_t> lost{0}; ///< the waiter whose arrival did not show
    std::atomic<std::uint32_t> rounds{0};
    std::atomic<bool> over{false}; ///< worker 0 decides for all
    std::uint32_t count = 0;
    std::uint32_t served = 0;                        ///< under the lock, as the order
    std::array<std::uint32_t, kMostWorkers> order{}; ///< of the last round
    bool wrong = false;
};
constinit Queue queue{};

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

template <class L>
void hold_and_queue(Queue& q) noexcept {
    auto& lock = lock_under_test<L>;
    lock.lock();
    q.served = 0;
    for (std::uint32_t waiter = 1; waiter < q.count; ++waiter) {
        const auto before = lock.word() & kArrivals;
        q.next.store(waiter, std::memory_order_release); // the lock is held
        if (!await([&] { return (lock.word() & kArrivals) != before; })) {
            q.lost.store(waiter, std::memory_order_relaxed); // read when the job has ended
            break;
        }
    }
    q.next.store(kNobody, std::memory_order_release); // whatever happened, everybody ends
    lock.unlock();
}

void judge(Queue& q) noexcept {
    for (std::uint32_t n = 0; n + 1 < q.count; ++n)
        q.wrong |= q.order[n] != n + 1;
}

template <class L>
void work(std::uint32_t worker, void*) {
    auto& q = queue;
    auto& lock = lock_under_test<L>;
    for (;;) {
        if (worker == 0) {
            hold_and_queue<L>(q);
        } else {
            // acquire: the holder has the lock.
            (void)await([&] { return q.next.load(std::memory_order_acquire) >= worker; });
            lock.lock();
            q.order[q.served++ % kMostWorkers] = worker;
            lock.unlock();
        }
        workers::progress();
        if (!q.barrier.wait(q.count))
            return;
        if (worker == 0) { // the barriers before and behind publish
            const auto round = q.rounds.load(std::memory_order_relaxed) + 1;
            const bool lost = q.lost.load(std::memory_order_relaxed) != 0;
            if (!lost)
                judge(q);
            q.rounds.store(round, std::memory_order_relaxed);
            q.next.store(0, std::memory_order_relaxed);
            q.over.store(round == kRounds || lost || q.wrong, std::memory_order_relaxed);
        }
        if (!q.barrier.wait(q.count) || q.over.load(std::memory_order_relaxed))
            return;
    }
}

/// Queues `count` workers, less the holder, and reports in which order they were served.
template <class L>
void run_queue(test::TestContext& context, std::uint32_t count) noexcept {
    auto& q = queue;
    q.barrier.reset();
    q.next.store(0, std::memory_order_relaxed); // no worker runs
    q.lost.store(0, std::memory_order_relaxed);
    q.rounds.store(0, std::memory_order_relaxed);
    q.over.store(false, std::memory_order_relaxed);
    q.count = count;
    q.order.fill(0);
    q.wrong = false;
    const EarlySleep early(kFewSpins);
    if (!contend<L>(context, count, 0, work<L>, nullptr, seconds(20)))
        return;
    if (const auto lost = q.lost.load(std::memory_order_relaxed); lost != 0)
        context.error("the lock's word did not show that worker %u had queued", lost);
    else if (q.wrong)
        context.fail("arrived 1 2 3 4 ..., served %u %u %u %u ... (%u waiters, round %u)", q.order[0], q.order[1],
                     q.order[2], q.order[3], count - 1, q.rounds.load(std::memory_order_relaxed));
    else if (q.rounds.load(std::memory_order_relaxed) != kRounds)
        context.error("%u rounds, expected %u: the workers lost each other", q.rounds.load(std::memory_order_relaxed),
                      kRounds);
    else
        context.pass();
}

template <class L>
void run(test::TestContext& context) {
    run_queue<L>(context, worker_count());
    if (context.status() != test::Status::pass)
        reset_lock<L>();
}

template <class L>
struct IsFifo : std::bool_constant<L::kIsFifo && L::kExcludes> {};
using FifoLocks = typename Filter<IsFifo, Locks>::type;

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.fifo",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "waiters get the lock in the order in which they came",
                          .min_cpus = 3,
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    FifoLocks{});

/// Negative control: a ticket lock that serves every two waiters in swapped order, 2 1 4 3 ..., and claims FIFO. Number
/// 0 is the first holder's; for one queue of an even number of waiters.
template <sync::LockMachine B>
class SwappedTicketLock {
  public:
    using Machine = B;
    static constexpr const char* kName = "swapped-ticket";
    static constexpr bool kIsFifo = true;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;

    void lock() noexcept {
        const auto number =
            static_cast<std::uint16_t>(word_.whole().fetch_add(kOneTail, std::memory_order_acquire) >> kTailShift);
        const std::uint16_t turn = number == 0 ? 0 : static_cast<std::uint16_t>(((number - 1) ^ 1) + 1);
        while (word_.head().load(std::memory_order_acquire) != turn)
            B::relax();
    }
    [[nodiscard]] bool try_lock() noexcept { return false; }
    void unlock() noexcept { word_.head().fetch_add(1, std::memory_order_release); }
    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId) noexcept {}

  private:
    static constexpr unsigned kTailShift = 16;
    static constexpr std::uint32_t kOneTail = 1u << kTailShift;

    sync::LockWord<B> word_;
};
using Swapped = SwappedTicketLock<paravirt::Native>;

void run_swapped(test::TestContext& context) {
    test::TestContext inner(context.seed());
    reset_lock<Swapped>(); // numbers from 0
    run_queue<Swapped>(inner, worker_count() % 2 != 0 ? worker_count() : worker_count() - 1);
    if (inner.status() == test::Status::fail && queue.wrong)
        context.pass();
    else if (inner.status() == test::Status::error)
        context.error("%s", inner.reason());
    else
        context.fail("a lock that serves every two waiters in swapped order was not reported");
}

constexpr std::array kSelfTests = {test::Test{.name = "selftest.unfair_order_is_seen",
                                              .claim = "the judge of lock.fifo notices a lock that swaps its waiters",
                                              .min_cpus = 3,
                                              .run = run_swapped}};

constinit const test::TestGroup fifo_group{kTests};
constinit const test::TestGroup fifo_self_group{kSelfTests};

} // namespace

SPINKICK_REGISTER_TESTS(fifo_group);
SPINKICK_REGISTER_TESTS(fifo_self_group);

} // namespace spinkick::lock_tests
