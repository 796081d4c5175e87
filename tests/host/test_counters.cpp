// SPDX-License-Identifier: BSD-2-Clause
//
// Counters that can be read and set to zero while others count, and the lengths of waits.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/machine.hpp"
#include "kernel/stress/counters.hpp"
#include "kernel/sync/timed_kicks.hpp"
#include "tests/host/backend_threads.hpp"
#include "tests/host/lock_workout.hpp"

namespace spinkick {
namespace host {
namespace {

/// A back end that wants to know how long waits sleep.
struct TimedThreads : Threads {
    static void record_blocked(Tsc length) noexcept {
        blocked[index(this_cpu())][sync::BlockedTimes::bucket_of(length.value)].fetch_add(1, std::memory_order_relaxed);
    }
    inline static std::array<std::array<std::atomic<std::uint64_t>, sync::BlockedTimes::kBuckets>, kMaxCpus> blocked{};
};
static_assert(sync::ParavirtBackend<TimedThreads>);

constexpr std::uint32_t kCpus = 4;
constexpr CpuId kSleeper{kCpus}; // not one of those that are summed

} // namespace
} // namespace host

// The machine under counters.hpp: threads as CPUs.
std::uint32_t machine::cpu_count() noexcept { return host::kCpus; }
CpuId machine::online_cpu(std::uint32_t n) noexcept { return CpuId{n}; }
std::uint64_t machine::lock_event(CpuId cpu, sync::LockEvent event) noexcept {
    return host::Threads::event(cpu, event);
}
std::uint64_t machine::blocked_waits(CpuId cpu, std::size_t bucket) noexcept {
    return host::TimedThreads::blocked[index(cpu)][bucket].load(std::memory_order_relaxed);
}

namespace host {
namespace {

using namespace std::chrono_literals;
using sync::BlockedTimes;
using sync::LockEvent;

TEST(Counters, AResetLosesNothingAndCountsNothingTwice) {
    constexpr std::uint64_t kResets = 2000;
    counters::Reader all;
    counters::Reader bystander; // resets of one reader do not reach another
    std::vector<counters::Reader> single;
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu)
        single.emplace_back(CpuId{cpu});
    (void)all.reset();
    (void)bystander.reset();
    for (auto& reader : single)
        (void)reader.reset();

    std::array<std::uint64_t, kCpus> counted{};
    std::atomic<bool> stop{false};
    std::uint64_t seen = 0;
    std::uint64_t seen_blocked = 0;
    std::uint64_t intervals_with_counts = 0;
    {
        Crew crew(kCpus, [&](CpuId cpu) {
            std::uint64_t mine = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                Threads::count(LockEvent::pv_kick_unlock, 1);
                TimedThreads::record_blocked(Tsc{mine % 1000});
                ++mine;
            }
            counted[index(cpu)] = mine;
        });
        for (std::uint64_t reset = 0; reset < kResets || intervals_with_counts < 10; ++reset) {
            const auto interval = all.reset();
            seen += interval[LockEvent::pv_kick_unlock];
            seen_blocked += interval.blocked.count();
            intervals_with_counts += interval[LockEvent::pv_kick_unlock] != 0 ? 1u : 0u;
            if (reset % 64 == 0)
                std::this_thread::yield();
        }
        stop = true;
    }
    const auto last = all.reset();
    std::uint64_t made = 0;
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
        made += counted[cpu];
        EXPECT_EQ(single[cpu].read()[LockEvent::pv_kick_unlock], counted[cpu]);
        EXPECT_EQ(single[cpu].reset().blocked.count(), counted[cpu]);
        EXPECT_EQ(single[cpu].read()[LockEvent::pv_kick_unlock], 0u);
    }
    EXPECT_EQ(seen + last[LockEvent::pv_kick_unlock], made);
    EXPECT_EQ(seen_blocked + last.blocked.count(), made);
    EXPECT_EQ(bystander.read()[LockEvent::pv_kick_unlock], made);
    EXPECT_EQ(all.read()[LockEvent::pv_kick_unlock], 0u);
}

TEST(BlockedTimes, HasABucketForEachPowerOfTwo) {
    for (std::size_t bucket = 1; bucket + 1 < BlockedTimes::kBuckets; ++bucket) {
        EXPECT_EQ(BlockedTimes::bucket_of(BlockedTimes::lowest(bucket)), bucket);
        EXPECT_EQ(BlockedTimes::bucket_of(BlockedTimes::highest(bucket)), bucket);
        EXPECT_EQ(BlockedTimes::bucket_of(BlockedTimes::highest(bucket) + 1), bucket + 1);
    }
    BlockedTimes times;
    EXPECT_EQ(times.percentile(5000), 0u);
    times.buckets[BlockedTimes::bucket_of(100)] = 98;
    times.buckets[BlockedTimes::bucket_of(5000)] = 2;
    EXPECT_EQ(times.count(), 100u);
    EXPECT_EQ(times.percentile(5000), 127u);
    EXPECT_EQ(times.percentile(9800), 127u);
    EXPECT_EQ(times.percentile(9900), 8191u);
    EXPECT_EQ(times.percentile(10'000), 8191u);
}

TEST(BlockedTimes, RecordsWaitsThatSleptAndNoOthers) {
    counters::Reader sleeper(kSleeper);
    (void)sleeper.reset();
    std::atomic<bool> may_end{false};
    std::atomic<std::uint64_t> waits{0};
    Crew crew;
    crew.add(kSleeper, [&] {
        sync::TimedKicks<TimedThreads>::wait_unless([]() noexcept { return true; });
        EXPECT_EQ(sleeper.read().blocked.count(), 0u) << "it did not even want to sleep";
        TimedThreads::kick(kSleeper); // found by the next wait, which then does not sleep
        sync::TimedKicks<TimedThreads>::wait_unless([]() noexcept { return false; });
        EXPECT_EQ(sleeper.read().blocked.count(), 0u) << "it was kicked before";
        while (!may_end) {
            sync::TimedKicks<TimedThreads>::wait_unless([&]() noexcept { return may_end.load(); });
            ++waits;
        }
    });
    // On a busy machine a kick may come before the sleeper has got from its last look into the sleep: once more then.
    std::uint64_t shortest = 0;
    do {
        const std::uint64_t before = waits;
        ASSERT_TRUE(eventually([] { return Threads::is_asleep(kSleeper); }));
        const auto begin = Threads::now();
        std::this_thread::sleep_for(20ms);
        shortest = (Threads::now() - begin).value;
        Threads::kick(kSleeper);
        ASSERT_TRUE(eventually([&] { return waits != before; }));
    } while (sleeper.read().blocked.count() == 0);
    EXPECT_LE(sleeper.read().blocked.count(), waits + 1);
    EXPECT_GE(sleeper.read().blocked.percentile(10'000), shortest);
    may_end = true;
    Threads::kick(kSleeper);
    crew.join();
}

} // namespace
} // namespace host
} // namespace spinkick
