// SPDX-License-Identifier: BSD-2-Clause
//
// bench.micro: each of 1, 2, 3 ... tasks does a fixed number of lock/unlock pairs with nothing to do in between, and
// what counts is how long all of them together take. It is how PV lock patches show what their code costs where nobody
// is preempted; with more tasks than host CPUs it shows what preemption costs where there is nothing but the lock.
//
// A measurement that limit_ms= ends is a measurement of the pairs that were done: the record has both numbers.
#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/stress/flight_recorder.hpp"
#include "tests/bench/engine.hpp"

namespace spinkick::bench {
namespace {

/// What a task did; in its CPU's scratch memory.
struct Task {
    Nanoseconds begin{}, end{};
    std::uint64_t done = 0;
    bool limited = false; ///< the time was up before its pairs were done
};

struct Shared {
    Start start{};
    std::uint64_t pairs = 0;
    /// All sections, by a load and a store: two at once lose one. A line of its own, as near to every lock.
    alignas(64) std::atomic<std::uint64_t> sections{0};
};
constinit Shared shared{};

template <class L>
void work(std::uint32_t worker, void*) {
    auto& task = scratch<Task>(worker);
    auto& lock = measured_lock<L>;
    if (!shared.start.line_up())
        return;
    task.begin = clock::now();
    do {
        lock.lock();
        // Inside the section: the lock under test orders it.
        shared.sections.store(shared.sections.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        lock.unlock();
        ++task.done;
        workers::progress();
        task.limited = workers::over() && task.done != shared.pairs;
    } while (task.done != shared.pairs && !task.limited);
    task.end = clock::now();
}

template <class L>
struct Micro {
    static bool run(test::TestContext& context, std::uint32_t tasks) {
        return contend<L>(context, tasks, work<L>, milliseconds(options::command_line().limit_ms));
    }
};
constexpr auto kRows = rows_of<Micro>();

/// Numbers of tasks: each one up to eight, as published; then twice as many, and all CPUs.
constexpr std::uint32_t next_tasks(std::uint32_t tasks, std::uint32_t most) noexcept {
    constexpr std::uint32_t kOneByOne = 8;
    if (tasks == most)
        return most + 1;
    return std::min(tasks < kOneByOne ? tasks + 1 : 2 * tasks, most);
}

/// False: the test is over.
bool measure(test::TestContext& context, const Row& row, std::uint32_t rep, std::uint32_t tasks) {
    clear_scratch<Task>(tasks);
    shared.start.set(tasks);
    shared.sections.store(0, std::memory_order_relaxed); // no worker runs yet
    Meter meter;
    meter.start();
    if (!row.run(context, tasks))
        return false;
    auto interval = meter.stop();
    if (!shared.start.all_began(context, row))
        return false;

    std::array<std::uint64_t, kMostBenchCpus> shares{};
    auto begin = scratch<Task>(0).begin;
    auto end = scratch<Task>(0).end;
    std::uint64_t all = 0;
    for (std::uint32_t worker = 0; worker < tasks; ++worker) {
        const auto& task = scratch<Task>(worker);
        begin = std::min(begin, task.begin);
        end = std::max(end, task.end);
        all += shares[worker] = task.done;
        if (task.done != shared.pairs && !task.limited)
            context.fail("%s/%s: task %u of %u did %llu of %llu pairs", row.lock, row.backend, worker, tasks,
                         static_cast<unsigned long long>(task.done), static_cast<unsigned long long>(shared.pairs));
    }
    if (const auto sections = shared.sections.load(std::memory_order_relaxed); row.excludes && sections != all)
        context.fail("%s/%s: %llu pairs of %u tasks, but %llu sections: two were in it at once", row.lock, row.backend,
                     static_cast<unsigned long long>(all), tasks, static_cast<unsigned long long>(sections));
    interval.duration = end - begin; // from the first pair to the last: starting the tasks is not part of it

    JsonLine json(record_storage(), "bench");
    add_who(json, "micro", row, rep, tasks);
    json.number("pairs", shared.pairs);
    add_acquisitions(json, interval.duration, {shares.data(), tasks});
    add_events(json, interval);
    (void)json.emit(); // a record that did not fit has said so
    return context.status() == test::Status::none;
}

void run(test::TestContext& context) {
    shared.pairs = options::command_line().pairs;
    const auto most = contenders();
    const stress::FlightRecording off(false);
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep)
        for (std::uint32_t tasks = 1; tasks <= most; tasks = next_tasks(tasks, most))
            for (const auto& row : kRows)
                if (is_selected(row) && !measure(context, row, rep, tasks))
                    return;
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "bench.micro",
               .claim = "1 to N tasks each do their lock/unlock pairs, one section at a time; figures per lock and N",
               .run = run,
               .on_request = true}};
constinit const test::TestGroup micro_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(micro_group);

} // namespace spinkick::bench
