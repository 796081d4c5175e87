// SPDX-License-Identifier: BSD-2-Clause
//
// bench.mixed: several locks of one type, a hot one among cold ones, as a kernel has them. Every second acquisition is
// of the hot one; which one that is changes from repetition to repetition, so that no place in memory is favoured. Each
// record says how often each lock was taken and how long was waited for it: the one with the longest waits is pounded,
// and the measurement has to find the hot one by that alone.
#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/splitmix64.hpp"
#include "kernel/stress/calibrated_work.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "tests/bench/engine.hpp"

namespace spinkick::bench {
namespace {

constexpr std::uint32_t kLocks = 8;
constexpr Nanoseconds kHold = microseconds(2);
constexpr Nanoseconds kThink = microseconds(4);

template <class L>
inline constinit std::array<L, kLocks> mixed_locks{};

struct PerLock {
    std::uint64_t acquisitions = 0;
    Tsc wait{}; ///< in lock(), what it takes alone included
};

/// In its CPU's scratch memory.
struct Tally {
    std::array<PerLock, kLocks> locks{};
};

struct Shared {
    Start start{};
    std::uint32_t hot = 0;
    std::uint64_t seed = 0, hold_units = 0, think_units = 0;
    /// Sections of each lock, by a load and a store: two at once lose one. A line each, as the locks may be.
    struct alignas(64) Section {
        std::atomic<std::uint64_t> count{0};
    };
    std::array<Section, kLocks> sections{};
};
constinit Shared shared{};

template <class L>
void work(std::uint32_t worker, void*) {
    auto& tally = scratch<Tally>(worker);
    auto random = splitmix64(shared.seed + worker);
    if (!shared.start.line_up())
        return;
    do {
        random = splitmix64(random);
        const auto cold = (shared.hot + 1 + static_cast<std::uint32_t>(random >> 32) % (kLocks - 1)) % kLocks;
        const auto n = (random & 1) != 0 ? shared.hot : cold;
        auto& lock = mixed_locks<L>[n];
        auto& section = shared.sections[n].count;
        const auto asked = machine::time_stamp();
        lock.lock();
        const auto acquired = machine::time_stamp();
        section.store(section.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); // the lock orders it
        stress::work(shared.hold_units);
        lock.unlock();
        ++tally.locks[n].acquisitions;
        tally.locks[n].wait = tally.locks[n].wait + (acquired - asked);
        workers::progress();
        stress::work(shared.think_units);
    } while (!workers::over());
}

template <class L>
struct Mixed {
    static bool run(test::TestContext& context, std::uint32_t count) {
        return contend<L, mixed_locks<L>>(context, count, work<L>, milliseconds(options::command_line().duration_ms));
    }
};
constexpr auto kRows = rows_of<Mixed>();

/// False: the test is over.
bool measure(test::TestContext& context, const Row& row, std::uint32_t rep, std::uint32_t count) {
    clear_scratch<Tally>(count);
    shared.start.set(count);
    for (auto& section : shared.sections)
        section.count.store(0, std::memory_order_relaxed); // no worker runs yet
    Meter meter;
    meter.start();
    if (!row.run(context, count))
        return false;
    const auto interval = meter.stop();
    if (!shared.start.all_began(context, row))
        return false;

    std::array<std::uint64_t, kMostBenchCpus> shares{};
    std::array<PerLock, kLocks> locks{};
    for (std::uint32_t worker = 0; worker < count; ++worker)
        for (std::uint32_t n = 0; n < kLocks; ++n) {
            const auto& own = scratch<Tally>(worker).locks[n];
            shares[worker] += own.acquisitions;
            locks[n].acquisitions += own.acquisitions;
            locks[n].wait = locks[n].wait + own.wait;
        }
    for (std::uint32_t n = 0; n < kLocks; ++n)
        if (const auto seen = shared.sections[n].count.load(std::memory_order_relaxed);
            row.excludes && seen != locks[n].acquisitions)
            context.fail("%s/%s: lock %u: %llu acquisitions, but %llu sections: two were in it at once", row.lock,
                         row.backend, n, static_cast<unsigned long long>(locks[n].acquisitions),
                         static_cast<unsigned long long>(seen));
    const auto pounded = static_cast<std::uint32_t>(
        std::max_element(locks.begin(), locks.end(),
                         [](const PerLock& a, const PerLock& b) { return a.wait < b.wait; }) -
        locks.begin());
    Tsc all_waits{};
    for (const auto& lock : locks)
        all_waits = all_waits + lock.wait;

    JsonLine json(record_storage(), "bench");
    add_who(json, "mixed", row, rep, count);
    json.number("hot", shared.hot).number("pounded", pounded);
    json.number("pounded_permille", locks[pounded].wait.value / (all_waits.value / 1000 + 1));
    json.begin_list("locks");
    for (const auto& lock : locks)
        json.tuple(lock.acquisitions, clock::to_nanoseconds(lock.wait).value);
    json.end();
    add_acquisitions(json, interval.duration, {shares.data(), count});
    add_events(json, interval);
    (void)json.emit(); // a record that did not fit has said so
    return context.status() == test::Status::none;
}

void run(test::TestContext& context) {
    const auto count = contenders();
    shared.hold_units = stress::units_for(kHold);
    shared.think_units = stress::units_for(kThink);
    const stress::FlightRecording off(false);
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep) {
        shared.seed = context.seed() + rep * kMaxCpus;
        shared.hot = static_cast<std::uint32_t>(splitmix64(shared.seed) % kLocks);
        for (const auto& row : kRows)
            if (is_selected(row) && !measure(context, row, rep, count))
                return;
    }
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "bench.mixed",
               .claim = "a hot lock among cold ones: each excludes, and the figures say which one is pounded",
               .run = run,
               .on_request = true}};
constinit const test::TestGroup mixed_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(mixed_group);

} // namespace spinkick::bench
