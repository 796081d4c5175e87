// SPDX-License-Identifier: BSD-2-Clause
//
// bench.io: the locks of a block driver. Tasks submit requests to 16 queues; a queue's completions come by interrupt on
// the CPU that serves it, where the handler takes the same lock: so tasks take it with interrupts masked, and a holder
// or waiter that is preempted holds up interrupts as well. The device is an IPI: it takes no time, and like a real one
// it sends no second interrupt while the first has not been looked at.
//
// The boot CPU takes no part where there is another: it watches, and its timer must stay alive.
#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/splitmix64.hpp"
#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "tests/bench/engine.hpp"

namespace spinkick::bench {
namespace {

constexpr std::uint32_t kQueues = 16;
constexpr std::uint64_t kDepth = 32;            ///< requests that a queue holds
constexpr Nanoseconds kThink = microseconds(2); ///< of a task between two requests

template <class L>
inline constinit std::array<L, kQueues> queue_locks{};

/// Behind its lock; each number is changed by a load and a store, so that two sections at once lose one.
struct alignas(64) Queue {
    std::atomic<std::uint64_t> submitted{0}, completed{0};
};

/// In its CPU's scratch memory.
struct Tally {
    std::uint64_t submitted = 0, full = 0;       ///< by the task
    std::uint64_t completed = 0, interrupts = 0; ///< by the handler
};

struct Shared {
    Start start{};
    std::uint32_t first = 0, count = 0;
    std::uint64_t seed = 0, think_units = 0;
    std::array<Queue, kQueues> queues{};
    /// Queues with requests that the CPU has not been told of, a bit each, by worker.
    struct alignas(64) Line {
        std::atomic<std::uint32_t> queues{0};
    };
    std::array<Line, kMostBenchCpus> interrupt_lines{};
    std::array<std::uint32_t, kMaxCpus> worker_of{}; ///< by CPU
};
constinit Shared shared{};

/// The completion interrupt, with interrupts masked.
template <class L>
void complete() noexcept {
    const auto worker = shared.worker_of[index(machine::this_cpu())];
    auto& tally = scratch<Tally>(worker, shared.first);
    ++tally.interrupts;
    // acquire: whoever set a bit has submitted before.
    auto due = shared.interrupt_lines[worker].queues.exchange(0, std::memory_order_acquire);
    for (std::uint32_t n = 0; due != 0; ++n, due >>= 1) {
        if ((due & 1) == 0)
            continue;
        auto& lock = queue_locks<L>[n];
        auto& queue = shared.queues[n];
        lock.lock();
        const auto done =
            queue.submitted.load(std::memory_order_relaxed) - queue.completed.load(std::memory_order_relaxed);
        tally.completed += done;
        // release: who sees all requests completed sees the tally as well.
        queue.completed.store(queue.completed.load(std::memory_order_relaxed) + done, std::memory_order_release);
        lock.unlock();
    }
}

template <class L>
bool submit(std::uint32_t n) noexcept {
    using B = typename L::Machine;
    auto& lock = queue_locks<L>[n];
    auto& queue = shared.queues[n];
    const auto interrupts = B::disable_interrupts();
    lock.lock();
    const bool has_room =
        queue.submitted.load(std::memory_order_relaxed) - queue.completed.load(std::memory_order_relaxed) < kDepth;
    if (has_room) // ordered by the queue's lock
        queue.submitted.store(queue.submitted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    lock.unlock();
    B::restore_interrupts(interrupts);
    if (!has_room)
        return false;
    const auto server = n % shared.count;
    // acq_rel: the handler sees the request; and if a bit was there, its interrupt has not looked yet.
    if (shared.interrupt_lines[server].queues.fetch_or(1u << n, std::memory_order_acq_rel) == 0)
        machine::send_test_interrupt(workers::cpu_of(server, shared.first));
    return true;
}

template <class L>
void work(std::uint32_t worker, void*) {
    auto& tally = scratch<Tally>(worker, shared.first);
    auto random = splitmix64(shared.seed + worker);
    if (!shared.start.line_up())
        return;
    do {
        random = splitmix64(random);
        if (submit<L>(static_cast<std::uint32_t>(random >> 32) % kQueues))
            ++tally.submitted;
        else
            ++tally.full;
        workers::progress();
        stress::work(shared.think_units);
    } while (!workers::over());
}

template <class L>
struct Io {
    static bool run(test::TestContext& context, std::uint32_t count) {
        machine::set_test_interrupt(complete<L>);
        return contend<L, queue_locks<L>>(context, count, work<L>, milliseconds(options::command_line().duration_ms),
                                          shared.first);
    }
};
// Not the floor: without a lock a queue would lose requests.
constexpr auto kRows = rows_of<Io, lock_tests::ExcludingLocks>();

std::uint64_t outstanding() noexcept {
    std::uint64_t sum = 0;
    for (const auto& line : shared.interrupt_lines)
        sum += line.queues.load(std::memory_order_acquire) == 0 ? 0u : 1u; // what its handler did before is visible
    for (const auto& queue : shared.queues)
        sum += queue.submitted.load(std::memory_order_acquire) - queue.completed.load(std::memory_order_acquire);
    return sum;
}

/// The last interrupts may still be under way when the tasks have ended. False, with a failure: they did not come.
bool drain(test::TestContext& context, const Row& row) noexcept {
    const clock::Deadline deadline(workers::watchdog());
    while (outstanding() != 0) {
        if (deadline.passed()) {
            for (std::uint32_t n = 0; n < kQueues; ++n) {
                const auto& queue = shared.queues[n];
                const auto submitted = queue.submitted.load(std::memory_order_relaxed);
                const auto completed = queue.completed.load(std::memory_order_relaxed);
                if (submitted != completed)
                    context.fail("%s/%s: queue %u: %llu requests submitted, %llu completed", row.lock, row.backend, n,
                                 static_cast<unsigned long long>(submitted),
                                 static_cast<unsigned long long>(completed));
            }
            context.fail("%s/%s: a completion interrupt did not come", row.lock, row.backend);
            return false;
        }
        machine::yield();
    }
    return true;
}

/// False: the test is over.
bool measure(test::TestContext& context, const Row& row, std::uint32_t rep) {
    const auto count = shared.count;
    clear_scratch<Tally>(count, shared.first);
    shared.start.set(count);
    for (auto& queue : shared.queues) { // no worker runs yet
        queue.submitted.store(0, std::memory_order_relaxed);
        queue.completed.store(0, std::memory_order_relaxed);
    }
    for (auto& line : shared.interrupt_lines)
        line.queues.store(0, std::memory_order_relaxed);
    for (std::uint32_t worker = 0; worker < count; ++worker)
        shared.worker_of[index(workers::cpu_of(worker, shared.first))] = worker;
    Meter meter;
    meter.start();
    if (!row.run(context, count))
        return false;
    const auto interval = meter.stop();
    if (!shared.start.all_began(context, row) || !drain(context, row))
        return false;

    std::array<std::uint64_t, kMostBenchCpus> shares{};
    Tally all;
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        const auto& tally = scratch<Tally>(worker, shared.first);
        shares[worker] = tally.submitted;
        all.submitted += tally.submitted;
        all.full += tally.full;
        all.completed += tally.completed;
        all.interrupts += tally.interrupts;
    }
    std::uint64_t queued = 0;
    for (const auto& queue : shared.queues)
        queued += queue.submitted.load(std::memory_order_relaxed);
    if (queued != all.submitted || all.completed != all.submitted)
        context.fail("%s/%s: %llu requests submitted, %llu queued, %llu completed: two CPUs were in a section at once",
                     row.lock, row.backend, static_cast<unsigned long long>(all.submitted),
                     static_cast<unsigned long long>(queued), static_cast<unsigned long long>(all.completed));

    JsonLine json(record_storage(), "bench");
    add_who(json, "io", row, rep, count);
    json.number("operations", all.completed)
        .number("operations_per_s", all.completed * 1'000'000 / (interval.duration.value / 1'000 + 1));
    json.number("interrupts", all.interrupts).number("full", all.full).number("queues", kQueues);
    add_acquisitions(json, interval.duration, {shares.data(), count});
    add_events(json, interval);
    (void)json.emit(); // a record that did not fit has said so
    return context.status() == test::Status::none;
}

void run(test::TestContext& context) {
    shared.first = workers::available(1) != 0 ? 1 : 0;
    shared.count = contenders(shared.first);
    shared.think_units = stress::units_for(kThink);
    const stress::FlightRecording off(false);
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep) {
        shared.seed = context.seed() + rep * kMaxCpus;
        for (const auto& row : kRows)
            if (is_selected(row) && !measure(context, row, rep))
                return;
    }
    context.pass();
}

constexpr std::array kTests = {test::Test{
    .name = "bench.io",
    .claim = "every request to 16 queues is completed by an interrupt that takes their locks; figures per lock",
    .run = run,
    .on_request = true}};
constinit const test::TestGroup io_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(io_group);

} // namespace spinkick::bench
