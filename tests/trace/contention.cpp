// SPDX-License-Identifier: BSD-2-Clause
//
// trace.*: how a lock is handed around, event by event, as `trace` records (docs/report-format.md), which the runner
// turns into trace.json. What is shown are the last events of each CPU, from its flight recorder. No figure of such a
// run is a measurement: the lock is traced.
//
//   trace.default_lock               in every run: the lock that the image would use here
//   trace.contention/LOCK/BACKEND    on request: any lock, with whole rings
#include <algorithm>
#include <array>
#include <new>

#include "arch/x86/paravirt/paravirt.hpp"
#include "kernel/json.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "kernel/test/environment.hpp"
#include "tests/lock/lock_test.hpp"

namespace spinkick::trace_tests {
namespace {

using lock_tests::lock_under_test;

constexpr Nanoseconds kHold = microseconds(2);
constexpr Nanoseconds kThink = microseconds(2);
constexpr Nanoseconds kDuration = milliseconds(50);

/// Steal time of a CPU as it grew, and where its events begin; in its scratch memory.
struct StealLog {
    struct Sample {
        Tsc at{};
        Nanoseconds steal{};
    };
    static constexpr std::size_t kMost = 16;
    std::array<Sample, kMost> samples{};
    std::uint32_t written = 0;
    std::uint64_t events_before = 0; ///< that its flight recorder had seen before this test

    /// Keeps the last ones, where it has changed.
    void sample(Tsc now, Nanoseconds steal) noexcept {
        if (written != 0 && samples[(written - 1) % kMost].steal == steal)
            return;
        samples[written++ % kMost] = {now, steal};
    }
};

struct Shared {
    workers::Barrier barrier{};
    std::uint32_t count = 0;
    std::uint64_t hold_units = 0, think_units = 0;
};
constinit Shared shared{};

StealLog& steal_log_of(std::uint32_t worker) noexcept {
    return *std::launder(reinterpret_cast<StealLog*>(machine::scratch_of(workers::cpu_of(worker)).data()));
}

template <class L>
void work(std::uint32_t worker, void*) {
    auto& lock = lock_under_test<L>;
    auto& steal = steal_log_of(worker);
    const auto self = machine::this_cpu();
    if (!shared.barrier.wait(shared.count))
        return;
    do {
        lock.lock();
        stress::work(shared.hold_units);
        lock.unlock();
        workers::progress();
        steal.sample(machine::time_stamp(), machine::steal_time(self));
        stress::work(shared.think_units);
    } while (!workers::over());
}

/// A lock as a row of the table.
struct Row {
    std::string_view lock, backend;
    test::Backend needs;
    bool (*run)(test::TestContext&, std::uint32_t count);
};

template <class L>
bool run_lock(test::TestContext& context, std::uint32_t count) {
    return lock_tests::contend<L>(context, count, 0, work<L>, nullptr, kDuration);
}

constexpr std::array<std::string_view, 3> kPolicyNames{"off", "state", "preempted"}; ///< of sync::WaitEarly

constinit std::array<char, 16384> json_storage{}; // a ring of 256 events

/// This CPU's counter on the boot CPU's scale.
std::uint64_t common_time(Tsc tsc, CpuId cpu) noexcept {
    return tsc.value - static_cast<std::uint64_t>(machine::skew_of(cpu).ticks);
}

struct Span {
    Tsc begin{}; ///< of the job: events before it are of other tests
    std::uint64_t most = 0;
};

void emit(const Row& row, std::uint32_t worker, const Span& span) noexcept {
    const auto cpu = workers::cpu_of(worker);
    const auto ns = [&](Tsc tsc) {
        const auto ticks = static_cast<std::int64_t>(common_time(tsc, cpu) - span.begin.value);
        return ticks <= 0 ? 0 : clock::to_nanoseconds({static_cast<std::uint64_t>(ticks)}).value;
    };
    JsonLine json(json_storage, "trace");
    json.text("lock", row.lock).text("backend", row.backend).number("cpu", raw(cpu));
    json.number("skew_ns", clock::to_nanoseconds({machine::skew_of(cpu).error_ticks}).value);
    const auto& steal = steal_log_of(worker);
    const auto log = machine::flight_log(cpu);
    const auto events = log.written - steal.events_before;
    const auto shown = std::min({events, span.most, stress::FlightRing::kRecords});
    if (row.lock == "pv-queued") { // the arguments of `halts` that say why a waiter did not spin on
        json.text("wait_early",
                  kPolicyNames[static_cast<std::size_t>(sync::tuning.wait_early.load(std::memory_order_relaxed))]);
        json.number("early_by_state", static_cast<std::uint32_t>(sync::LockEvent::pv_wait_early));
        json.number("early_by_flag", static_cast<std::uint32_t>(sync::LockEvent::pv_vcpu_is_preempted));
    }
    json.number("lost", events - shown).begin_list("kinds");
    for (const auto name : sync::kFlightEventNames)
        json.text(name);
    json.end().begin_list("events");
    log.for_each_of_last(shown, [&](const stress::FlightRecord& record) {
        json.tuple(ns(record.time), static_cast<std::uint32_t>(record.event), record.argument);
    });
    json.end().begin_list("steal");
    for (auto n = steal.written - std::min<std::uint32_t>(steal.written, StealLog::kMost); n != steal.written; ++n) {
        const auto& sample = steal.samples[n % StealLog::kMost];
        json.tuple(ns(sample.at), sample.steal.value);
    }
    json.end();
    (void)json.emit(); // a record that did not fit has said so
}

void run_row(test::TestContext& context, const Row& row, std::uint64_t most) {
    const auto count = lock_tests::worker_count();
    for (std::uint32_t worker = 0; worker < count; ++worker)
        new (machine::scratch_of(workers::cpu_of(worker)).data())
            StealLog{.events_before = machine::flight_log(workers::cpu_of(worker)).written};
    shared.barrier.reset();
    shared.count = count;
    shared.hold_units = stress::units_for(kHold);
    shared.think_units = stress::units_for(kThink);
    const Span span{machine::time_stamp(), most};
    bool all_ended = false;
    {
        const stress::FlightRecording on(true);
        all_ended = row.run(context, count);
    }
    for (std::uint32_t worker = 0; worker < count; ++worker)
        emit(row, worker, span);
    if (!all_ended)
        return; // contend() has said why
    std::uint64_t acquired = 0;
    for (std::uint32_t worker = 0; worker < count; ++worker)
        machine::flight_log(workers::cpu_of(worker)).for_each_of_last(most, [&](const stress::FlightRecord& record) {
            if (record.event == sync::FlightEvent::acquired && record.time >= span.begin)
                ++acquired;
        });
    if (acquired == 0)
        return context.fail("%u CPUs contended, and no acquisition is in their flight recorders", count);
    context.pass();
}

constexpr auto kRows = lock_tests::table_of(
    []<class L>() {
        return Row{L::kName, L::Machine::kName, paravirt::need_of<typename L::Machine>(), run_lock<L>};
    },
    lock_tests::ExcludingLocks{});

template <class L>
void run_whole(test::TestContext& context) {
    for (const auto& row : kRows)
        if (row.lock == L::kName && row.backend == L::Machine::kName)
            return run_row(context, row, stress::FlightRing::kRecords);
}

void run_default(test::TestContext& context) {
    // A byte on the console is dear where `compact` is set.
    const std::uint64_t most = options::command_line().compact ? 24 : 64;
    const auto& chosen = paravirt::default_lock();
    for (const auto& row : kRows)
        if (row.lock == chosen.lock && row.backend == chosen.backend)
            return run_row(context, row, most);
    context.error("the default lock %.*s on %.*s is none of the list", static_cast<int>(chosen.lock.size()),
                  chosen.lock.data(), static_cast<int>(chosen.backend.size()), chosen.backend.data());
}

constexpr auto kTests = lock_tests::table_of(
    []<class L>() {
        return test::Test{.name = "trace.contention",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "the flight recorder shows how contending CPUs hand the lock around",
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run_whole<L>,
                          .on_request = true};
    },
    lock_tests::ExcludingLocks{});
constinit const test::TestGroup contention_group{kTests};

constexpr std::array kDefaultTests = {
    test::Test{.name = "trace.default_lock",
               .claim = "the flight recorder shows how contending CPUs hand the default lock around",
               .run = run_default}};
constinit const test::TestGroup default_group{kDefaultTests};

} // namespace

SPINKICK_REGISTER_TESTS(contention_group);
SPINKICK_REGISTER_TESTS(default_group);

} // namespace spinkick::trace_tests
