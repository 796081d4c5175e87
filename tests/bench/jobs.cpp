// SPDX-License-Identifier: BSD-2-Clause
//
// bench.jobs: a fixed number of jobs, each so many sections of one lock with think time between them, is worked off by
// all CPUs together, as a multi-user benchmark does it: jobs a minute, and where the time went.
//
//   light, moderate, heavy   think time with which CPUs that nobody preempts wait for the lock 0.5 %, 1.6 % and 15.4 %
//                            of their time. What one handoff takes is measured at the start, the rest is reckoned
//                            (kernel/stress/closed_queue.hpp), and the part really reached stands in each record
//   real        from the first job to the last
//   sys         in lock(), section and unlock(), with what interrupts and preemption add; all CPUs together
//   usr         in think time, likewise
//   slow path   in lock(), beyond what it takes alone
#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/log.hpp"
#include "kernel/splitmix64.hpp"
#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/closed_queue.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "kernel/stress/histogram.hpp"
#include "tests/bench/engine.hpp"

namespace spinkick::bench {
namespace {

constexpr std::uint64_t kSectionsPerJob = 10;
constexpr Nanoseconds kHold = microseconds(2);
constexpr std::uint32_t kHoldWords = 16; ///< that a section writes

struct Load {
    JobLoad load;
    const char* bench; ///< as in records
    std::uint64_t slow_ppm;
};
constexpr std::array kLoads{Load{JobLoad::light, "jobs_light", 5'000}, Load{JobLoad::moderate, "jobs_moderate", 16'000},
                            Load{JobLoad::heavy, "jobs_heavy", 154'000}};

/// What a worker did; in its CPU's scratch memory.
struct Tally {
    Nanoseconds begin{}, end{};
    Tsc sys{}, usr{}, slow{};
    std::uint64_t sections = 0;
    bool limited = false; ///< the time was up before the jobs were done
};

struct Shared {
    Start start{};
    std::uint64_t jobs = 0;
    std::uint64_t seed = 0;
    std::uint64_t hold_units = 0, think_units = 0;
    Tsc alone{}; ///< lock() of a free lock, clock included
    alignas(64) std::atomic<std::uint64_t> next_job{0};
    alignas(64) std::atomic<std::uint64_t> sections{0}; ///< by a load and a store: two at once lose one
    std::array<std::atomic<std::uint64_t>, kHoldWords> data{};
};
constinit Shared shared{};

/// Inside the section: the lock under test orders all of it.
void section() noexcept {
    shared.sections.store(shared.sections.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    for (auto& word : shared.data)
        word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    stress::work(shared.hold_units);
}

template <class L>
void work(std::uint32_t worker, void*) {
    auto& tally = scratch<Tally>(worker);
    auto& lock = measured_lock<L>;
    auto random = splitmix64(shared.seed + worker);
    if (!shared.start.line_up())
        return;
    tally.begin = clock::now();
    auto left = machine::time_stamp();
    // A job is taken by its number; nothing else is handed over with it.
    while (!tally.limited && shared.next_job.fetch_add(1, std::memory_order_relaxed) < shared.jobs) {
        for (std::uint64_t n = 0; n < kSectionsPerJob; ++n) {
            if (workers::over()) {
                tally.limited = true;
                break;
            }
            stress::work(stress::think_time(shared.think_units, random = splitmix64(random)));
            const auto asked = machine::time_stamp();
            lock.lock();
            const auto acquired = machine::time_stamp();
            section();
            lock.unlock();
            const auto released = machine::time_stamp();
            tally.usr = tally.usr + (asked - left);
            tally.sys = tally.sys + (released - asked);
            tally.slow = tally.slow + (acquired - asked - shared.alone);
            left = released;
            ++tally.sections;
            workers::progress();
        }
    }
    tally.end = clock::now();
}

template <class L>
struct Jobs {
    static bool run(test::TestContext& context, std::uint32_t count) {
        return contend<L>(context, count, work<L>, milliseconds(options::command_line().limit_ms));
    }
};
constexpr auto kRows = rows_of<Jobs>();

// --- calibration ----------------------------------------------------------------------------------------------------

/// The queued lock hands over in turn: with two CPUs that always want it, a CPU has it every second time.
using Reference = sync::QueuedLock<paravirt::Native>;

struct Calibration {
    stress::Histogram between; ///< ticks from one acquisition of this CPU to its next
    stress::Histogram wait;    ///< ticks in lock()
};

void calibrate(std::uint32_t worker, void*) {
    auto& record = scratch<Calibration>(worker);
    auto& lock = measured_lock<Reference>;
    const auto self = machine::this_cpu();
    if (!shared.start.line_up())
        return;
    auto last = machine::time_stamp();
    do {
        const auto asked = machine::time_stamp();
        lock.lock();
        const auto acquired = machine::time_stamp();
        section();
        lock.unlock();
        record.between.record((acquired - last).value, self);
        record.wait.record((acquired - asked).value, self);
        last = acquired;
        workers::progress();
    } while (!workers::over());
}

/// Medians, since whoever is preempted meanwhile must not count. False: a stall.
bool measure_reference(test::TestContext& context, std::uint32_t workers, Calibration& sum) noexcept {
    constexpr Nanoseconds kDuration = milliseconds(20);
    clear_scratch<Calibration>(workers);
    shared.start.set(workers);
    if (!contend<Reference>(context, workers, calibrate, kDuration))
        return false;
    sum.between.clear();
    sum.wait.clear();
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
        sum.between.merge(scratch<Calibration>(worker).between);
        sum.wait.merge(scratch<Calibration>(worker).wait);
    }
    return true;
}

constinit Calibration measured{};

/// One turn of the lock, handing it on included; 0 if it could not be measured.
std::uint64_t turn_of(test::TestContext& context, std::uint32_t count) noexcept {
    constexpr std::uint32_t kMedian = 5000;
    shared.hold_units = stress::units_for(kHold);
    if (!measure_reference(context, 1, measured))
        return 0;
    shared.alone = {measured.wait.percentile(kMedian)};
    const auto alone = measured.between.percentile(kMedian);
    if (count == 1)
        return alone;
    if (!measure_reference(context, 2, measured))
        return 0;
    // On one host CPU the two hardly ever meet: then a turn is what it is alone.
    return std::max(measured.between.percentile(kMedian) / 2, alone);
}

// --- measurement ----------------------------------------------------------------------------------------------------

struct Case {
    const Load& load;
    Nanoseconds think{}; ///< mean
    std::uint32_t rep = 0, count = 0;
};

/// False: the test is over.
bool measure(test::TestContext& context, const Row& row, const Case& c) {
    const auto count = c.count;
    clear_scratch<Tally>(count);
    shared.start.set(count);
    shared.next_job.store(0, std::memory_order_relaxed); // no worker runs yet
    shared.sections.store(0, std::memory_order_relaxed);
    Meter meter;
    meter.start();
    if (!row.run(context, count))
        return false;
    auto interval = meter.stop();
    if (!shared.start.all_began(context, row))
        return false;

    std::array<std::uint64_t, kMostBenchCpus> shares{};
    Tally all = scratch<Tally>(0);
    all.sections = 0;
    all.sys = all.usr = all.slow = {};
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        const auto& tally = scratch<Tally>(worker);
        shares[worker] = tally.sections;
        all.begin = std::min(all.begin, tally.begin);
        all.end = std::max(all.end, tally.end);
        all.sections += tally.sections;
        all.sys = all.sys + tally.sys;
        all.usr = all.usr + tally.usr;
        all.slow = all.slow + tally.slow;
        all.limited = all.limited || tally.limited;
    }
    interval.duration = all.end - all.begin;
    if (const auto whole = shared.jobs * kSectionsPerJob; all.sections != whole && !all.limited)
        context.fail("%s/%s: %llu of %llu sections were done", row.lock, row.backend,
                     static_cast<unsigned long long>(all.sections), static_cast<unsigned long long>(whole));
    if (const auto seen = shared.sections.load(std::memory_order_relaxed); row.excludes && seen != all.sections)
        context.fail("%s/%s: %llu acquisitions, but %llu sections: two were in it at once", row.lock, row.backend,
                     static_cast<unsigned long long>(all.sections), static_cast<unsigned long long>(seen));

    const auto ns = [](Tsc ticks) { return clock::to_nanoseconds(ticks).value; };
    constexpr std::uint64_t kMillion = 1'000'000;
    const auto spent = ns(all.sys) + ns(all.usr);
    JsonLine json(record_storage(), "bench");
    add_who(json, c.load.bench, row, c.rep, count);
    json.number("jobs", shared.jobs).number("sections_per_job", kSectionsPerJob);
    // By sections, so that a measurement whose time was up counts what it did.
    json.number("jobs_per_min",
                all.sections * (60 * kMillion / kSectionsPerJob) / (interval.duration.value / 1'000 + 1));
    json.number("sys_ns", ns(all.sys)).number("usr_ns", ns(all.usr));
    json.number("slow_ppm", ns(all.slow) / (spent / kMillion + 1)).number("slow_wanted_ppm", c.load.slow_ppm);
    json.number("think_ns", c.think.value);
    add_acquisitions(json, interval.duration, {shares.data(), count});
    add_events(json, interval);
    (void)json.emit(); // a record that did not fit has said so
    return context.status() == test::Status::none;
}

void run(test::TestContext& context) {
    const auto& line = options::command_line();
    const auto count = contenders();
    const stress::FlightRecording off(false);
    const auto turn = turn_of(context, count);
    if (turn == 0)
        return context.error("the handoff of the queued lock could not be measured");
    // A lone CPU waits for nobody; it gets the think time of two.
    const stress::ClosedQueue queue{std::max(count, 2u), turn};
    std::array<Nanoseconds, kLoads.size()> think{};
    for (std::size_t i = 0; i < kLoads.size(); ++i)
        think[i] = clock::to_nanoseconds({queue.think_for(kLoads[i].slow_ppm)});

    shared.jobs = line.jobs;
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep) {
        shared.seed = context.seed() + rep * kMaxCpus;
        for (std::size_t i = 0; i < kLoads.size(); ++i) {
            if (line.load != JobLoad::all && line.load != kLoads[i].load)
                continue;
            shared.think_units = stress::units_for(think[i]);
            for (const auto& row : kRows)
                if (is_selected(row) && !measure(context, row, {kLoads[i], think[i], rep, count}))
                    return;
        }
    }
    context.pass();
}

constexpr std::array kTests = {test::Test{
    .name = "bench.jobs",
    .claim = "jobs with light, moderate and heavy contention are all done, one section at a time; figures per lock",
    .run = run,
    .on_request = true}};
constinit const test::TestGroup jobs_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(jobs_group);

} // namespace spinkick::bench
