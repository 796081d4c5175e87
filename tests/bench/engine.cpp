// SPDX-License-Identifier: BSD-2-Clause
#include "tests/bench/engine.hpp"

#include <algorithm>

#include "kernel/glob.hpp"
#include "kernel/stress/fairness.hpp"
#include "kernel/test/environment.hpp"
#include "kernel/test/registry.hpp"

namespace spinkick::bench {
namespace {

using sync::LockEvent;

constinit std::array<char, 16384> storage{};

std::uint64_t to_ns(std::uint64_t ticks) noexcept { return clock::to_nanoseconds({ticks}).value; }

/// How long the waits that slept lasted, if there were any.
void add_blocked(JsonLine& json, const sync::BlockedTimes& blocked) noexcept {
    if (blocked.count() == 0)
        return;
    json.number("blocked_p50_ns", to_ns(blocked.percentile(5000)))
        .number("blocked_p99_ns", to_ns(blocked.percentile(9900)));
    json.number("blocked_max_ns", to_ns(blocked.percentile(10'000)));
    if (options::command_line().compact)
        return;
    json.begin_list("blocked");
    for (std::size_t i = 0; i < blocked.buckets.size(); ++i)
        if (blocked.buckets[i] != 0)
            json.tuple(to_ns(sync::BlockedTimes::lowest(i)), blocked.buckets[i]);
    json.end();
}

} // namespace

bool is_selected(const Row& row) noexcept {
    if (!test::backend_unavailable_reason(row.needs).empty())
        return false;
    const auto& globs = options::command_line().locks;
    if (globs.empty())
        return true;
    const test::TestName place(test::Test{.name = row.lock, .lock = row.backend, .backend = {}, .claim = {}});
    return std::any_of(globs.items().begin(), globs.items().end(),
                       [&](auto glob) { return glob_match(glob, row.lock) || glob_match(glob, place.view()); });
}

std::uint32_t repetitions() noexcept {
    constexpr std::uint32_t kUsual = 3;
    const auto asked = options::command_line().repeat;
    return asked == 0 ? kUsual : asked;
}

std::uint32_t contenders(std::uint32_t first) noexcept {
    return std::min(workers::available(first), options::command_line().bench_cpus);
}

Nanoseconds total_steal() noexcept {
    Nanoseconds sum{};
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        sum = sum + machine::steal_time(machine::online_cpu(n));
    return sum;
}

std::array<std::uint64_t, kMostBenchCpus> kicks_taken() noexcept {
    std::array<std::uint64_t, kMostBenchCpus> taken{};
    for (std::uint32_t n = 0; n < std::min(machine::cpu_count(), kMostBenchCpus); ++n)
        for (const auto event : {LockEvent::token_ended, LockEvent::token_kept, LockEvent::token_merged})
            taken[n] += machine::lock_event(machine::online_cpu(n), event);
    return taken;
}

bool Start::all_began(test::TestContext& context, const Row& row) const noexcept {
    const auto late = late_.load(std::memory_order_relaxed);
    if (late != 0)
        context.error("%s/%s: %u of %u workers did not begin within the watchdog interval", row.lock, row.backend, late,
                      count_);
    return late == 0;
}

std::span<char> record_storage() noexcept { return storage; }

void add_who(JsonLine& json, const char* bench, const Row& row, std::uint32_t rep, std::uint32_t cpus) noexcept {
    json.text("bench", bench).text("lock", row.lock).text("backend", row.backend);
    json.number("rep", rep).number("cpus", cpus);
}

void add_acquisitions(JsonLine& json, Nanoseconds duration, std::span<const std::uint64_t> shares) noexcept {
    const auto fairness = stress::fairness_of(shares);
    json.number("duration_ns", duration.value).number("acquisitions", fairness.total);
    json.number("acquisitions_per_s", fairness.total * 1'000'000 / (duration.value / 1'000 + 1));
    json.number("share_min_permille", fairness.share_min_permille)
        .number("share_max_permille", fairness.share_max_permille);
    json.number("jain_permille", fairness.jain_permille);
}

void add_events(JsonLine& json, const Interval& interval) noexcept {
    const auto& events = interval.events;
    json.number("halts", events[LockEvent::hibernate_stats]).number("kicks", events[LockEvent::kick_stats]);
    json.number("spurious", events[LockEvent::wake_without_token] + events[LockEvent::wake_by_interrupt]);
    json.number("steal_ns", interval.steal.value);
    for (std::size_t i = 0; i < sync::kLockEvents; ++i) {
        const auto event = static_cast<LockEvent>(i);
        if (event == LockEvent::hibernate_stats || event == LockEvent::kick_stats)
            continue; // `halts` and `kicks` above
        if (events.values[i] != 0)
            json.number(sync::kLockEventNames[i], events.values[i]);
    }
    if (events[LockEvent::kick_stats] != 0)
        json.list(
            "kicks_taken",
            std::span<const std::uint64_t>(interval.kicks_taken).first(std::min(machine::cpu_count(), kMostBenchCpus)));
    if (interval.sync_begin && interval.sync_end)
        json.number("sync_begin", *interval.sync_begin).number("sync_end", *interval.sync_end);
    add_blocked(json, events.blocked);
}

} // namespace spinkick::bench
