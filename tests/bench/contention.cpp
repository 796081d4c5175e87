// SPDX-License-Identifier: BSD-2-Clause
//
// bench.contention: N CPUs take one lock over and over with fixed hold and think time, all locks side by side,
// interleaved over the repetitions so that a drift of the host hits all of them alike. Verdicts are about counts only;
// figures go out as records.
//
//   wait     lock() called to acquired, on one CPU
//   handoff  the releasing store to the next holder's first instruction in the section, for acquisitions that had to
//   wait; two CPUs, so the
//            skew between their counters is taken out, and what is known of its error stands beside the figure
//   hold     first to last instruction of the section
#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/log.hpp"
#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/fairness.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "kernel/stress/histogram.hpp"
#include "tests/bench/engine.hpp"

namespace spinkick::bench {
namespace {

constexpr std::uint32_t kHoldWords = 16;        ///< words that the section writes
constexpr Nanoseconds kHold = microseconds(2);  ///< work inside the section
constexpr Nanoseconds kThink = microseconds(2); ///< work between two acquisitions

/// What a worker records; lives in its CPU's scratch memory.
struct Record {
    stress::Histogram wait, handoff, hold;
    stress::GapTracker gaps;
    std::uint64_t acquisitions = 0;
    std::uint64_t longest_run = 0; ///< acquisitions in a row
};

struct Shared {
    Start start{};
    std::uint64_t hold_units = 0, think_units = 0;
    // Written inside the section only: the lock under test orders them.
    std::atomic<std::uint64_t> released_at{0};
    std::atomic<std::uint32_t> last_holder{~0u};
    std::atomic<std::uint64_t> run_length{0};
    std::array<std::atomic<std::uint64_t>, kHoldWords> data{};
};
constinit Shared shared{};

Record& record_of(std::uint32_t worker) noexcept { return scratch<Record>(worker); }

/// This CPU's counter on the boot CPU's scale.
std::uint64_t common_time(Tsc tsc, std::int64_t skew) noexcept { return tsc.value - static_cast<std::uint64_t>(skew); }

template <class L>
void work(std::uint32_t worker, void*) {
    auto& s = shared;
    auto& record = record_of(worker);
    const auto own_skew = machine::skew_of(machine::this_cpu());
    const auto skew = own_skew.ticks;
    const auto self = machine::this_cpu();
    auto& lock = measured_lock<L>;
    if (!s.start.line_up())
        return;
    record.gaps.start(machine::time_stamp());
    // Once in any case: on a host with few CPUs the duration may have passed before all were here.
    do {
        workers::progress();
        const auto asked = machine::time_stamp();
        lock.lock();
        const auto acquired = machine::time_stamp();
        const auto released = s.released_at.load(std::memory_order_relaxed); // inside the section, as all of `s` below
        for (auto& word : s.data)
            word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        stress::work(s.hold_units);
        const bool same = s.last_holder.load(std::memory_order_relaxed) == raw(self);
        const auto run = same ? s.run_length.load(std::memory_order_relaxed) + 1 : 1;
        s.run_length.store(run, std::memory_order_relaxed);
        s.last_holder.store(raw(self), std::memory_order_relaxed);
        const auto leaving = machine::time_stamp();
        // A CPU whose counter was not compared gives no time for others to reckon with.
        s.released_at.store(own_skew.measured ? common_time(leaving, skew) : 0, std::memory_order_relaxed);
        lock.unlock();

        record.wait.record((acquired - asked).value, self);
        record.hold.record((leaving - acquired).value, self);
        const auto entered = common_time(acquired, skew);
        // Only if it waited for that release: one that came after the release found the lock free.
        if (own_skew.measured && released > common_time(asked, skew) && entered > released)
            record.handoff.record(entered - released, self);
        if (run > record.longest_run)
            record.longest_run = run;
        record.gaps.acquired(acquired);
        ++record.acquisitions;
        stress::work(s.think_units);
    } while (!workers::over());
}

template <class L>
struct Contention {
    static bool run(test::TestContext& context, std::uint32_t count) {
        return contend<L>(context, count, work<L>, milliseconds(options::command_line().duration_ms));
    }
};
constexpr auto kRows = rows_of<Contention>();

/// All repetitions of one lock together.
struct Total {
    stress::Histogram wait, handoff, hold;

    void clear() noexcept { wait.clear(), handoff.clear(), hold.clear(); }
};
constinit std::array<Total, kRows.size()> totals{};

void emit_repetition(const Row& row, std::uint32_t rep, std::uint32_t count, const Interval& interval) noexcept {
    std::array<std::uint64_t, kMostBenchCpus> shares{};
    std::uint64_t longest_run = 0;
    Tsc longest_gap{};
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        const auto& record = record_of(worker);
        shares[worker] = record.acquisitions;
        longest_run = std::max(longest_run, record.longest_run);
        longest_gap = std::max(longest_gap, record.gaps.longest());
    }
    JsonLine json(record_storage(), "bench");
    add_who(json, "contention", row, rep, count);
    add_acquisitions(json, interval.duration, {shares.data(), count});
    json.number("longest_gap_ns", clock::to_nanoseconds(longest_gap).value).number("longest_run", longest_run);
    add_events(json, interval);
    (void)json.emit(); // a record that did not fit has said so
}

void emit_histogram(const Row& row, const char* what, const stress::Histogram& histogram,
                    std::uint64_t skew_ticks) noexcept {
    const auto ns = [](std::uint64_t ticks) { return clock::to_nanoseconds({ticks}).value; };
    JsonLine json(record_storage(), "histogram");
    json.text("bench", "contention").text("lock", row.lock).text("backend", row.backend).text("what", what);
    json.number("count", histogram.count());
    json.number("p50_ns", ns(histogram.percentile(5000))).number("p90_ns", ns(histogram.percentile(9000)));
    json.number("p99_ns", ns(histogram.percentile(9900))).number("p999_ns", ns(histogram.percentile(9990)));
    json.number("max_ns", ns(histogram.max()))
        .number("max_cpu", raw(histogram.max_cpu()))
        .number("skew_ns", ns(skew_ticks));
    if (!options::command_line().compact) {
        json.begin_list("buckets");
        histogram.for_each_bucket([&](std::uint64_t lowest, std::uint64_t n) { json.tuple(ns(lowest), n); });
        json.end();
    }
    (void)json.emit();
}

/// Largest error of what is known about the counters of the CPUs that took part.
std::uint64_t skew_error(std::uint32_t count) noexcept {
    std::uint64_t error = 0;
    for (std::uint32_t worker = 0; worker < count; ++worker)
        error = std::max(error, machine::skew_of(workers::cpu_of(worker)).error_ticks);
    return error;
}

void run(test::TestContext& context) {
    const auto count = contenders();
    for (auto& total : totals)
        total.clear();
    Meter meter;
    const stress::FlightRecording off(false);
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep) {
        for (std::size_t i = 0; i < kRows.size(); ++i) {
            const auto& row = kRows[i];
            if (!is_selected(row))
                continue;
            clear_scratch<Record>(count);
            shared.start.set(count);
            shared.hold_units = stress::units_for(kHold);
            shared.think_units = stress::units_for(kThink);
            shared.released_at.store(0, std::memory_order_relaxed); // no worker runs yet
            shared.last_holder.store(~0u, std::memory_order_relaxed);
            meter.start();
            if (!row.run(context, count))
                return;
            const auto interval = meter.stop();
            if (!shared.start.all_began(context, row))
                return;
            emit_repetition(row, rep, count, interval);
            for (std::uint32_t worker = 0; worker < count; ++worker) {
                const auto& record = record_of(worker);
                totals[i].wait.merge(record.wait);
                totals[i].handoff.merge(record.handoff);
                totals[i].hold.merge(record.hold);
                if (record.acquisitions == 0)
                    log("# %s/%s: worker %u never got the lock in repetition %u", row.lock, row.backend, worker, rep);
            }
        }
    }
    const auto skew = skew_error(count);
    for (std::size_t i = 0; i < kRows.size(); ++i) {
        if (!is_selected(kRows[i]))
            continue;
        emit_histogram(kRows[i], "wait", totals[i].wait, 0);
        emit_histogram(kRows[i], "handoff", totals[i].handoff, skew);
        if (!options::command_line().compact)
            emit_histogram(kRows[i], "hold", totals[i].hold, 0);
        if (totals[i].wait.count() == 0)
            return context.error("%s/%s: no acquisition at all", kRows[i].lock, kRows[i].backend);
    }
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "bench.contention",
               .claim = "every lock serves contending CPUs; figures per lock, repetitions interleaved",
               .min_cpus = 2,
               .run = run}};
constinit const test::TestGroup contention_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(contention_group);

} // namespace spinkick::bench
