// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace spinkick::stress {
namespace {

using sync::FlightEvent;

std::vector<FlightRecord> last(const FlightLog& log, std::uint64_t most) {
    std::vector<FlightRecord> records;
    log.for_each_of_last(most, [&](const FlightRecord& record) { records.push_back(record); });
    return records;
}

TEST(FlightRecorder, GivesBackWhatWasPutOldestFirst) {
    const auto ring = std::make_unique<FlightRing>();
    ring->put(0, Tsc{100}, FlightEvent::wants, 0xffff'ffff);
    ring->put(1, Tsc{200}, FlightEvent::kicks, 0);
    const auto records = last({ring.get(), 2}, 64);
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].time.value, 100u);
    EXPECT_EQ(records[0].event, FlightEvent::wants);
    EXPECT_EQ(records[0].argument, 0xffff'ffffu);
    EXPECT_EQ(records[1].event, FlightEvent::kicks);
}

TEST(FlightRecorder, KeepsTheLastOnes) {
    const auto ring = std::make_unique<FlightRing>();
    const std::uint64_t written = 5 * FlightRing::kRecords + 7;
    for (std::uint64_t n = 0; n < written; ++n)
        ring->put(n, Tsc{n}, FlightEvent::acquired, static_cast<std::uint32_t>(n));
    const auto all = last({ring.get(), written}, ~0ull);
    ASSERT_EQ(all.size(), FlightRing::kRecords);
    EXPECT_EQ(all.front().argument, written - FlightRing::kRecords);
    EXPECT_EQ(all.back().argument, written - 1);
    EXPECT_EQ(last({ring.get(), written}, 64).front().argument, written - 64);
    EXPECT_FALSE(ring->get(written - FlightRing::kRecords - 1)) << "overwritten";
    EXPECT_FALSE(ring->get(written)) << "not written yet";
}

TEST(FlightRecorder, ANumberThatWasTakenAndNotWrittenIsLeftOut) {
    const auto ring = std::make_unique<FlightRing>();
    ring->put(0, Tsc{1}, FlightEvent::wants, 1);
    ring->put(2, Tsc{3}, FlightEvent::acquired, 3); // an interrupt between the two lines of the writer
    EXPECT_EQ(last({ring.get(), 3}, 64).size(), 2u);
}

TEST(FlightRecorder, NothingWithoutARing) { EXPECT_TRUE(last({nullptr, 12}, 64).empty()); }

TEST(FlightRecorder, ALapThatHasOverflownIsStillRight) {
    const auto ring = std::make_unique<FlightRing>();
    const std::uint64_t number = (std::uint64_t{1} << 24) * FlightRing::kRecords + 3;
    ring->put(number, Tsc{9}, FlightEvent::wakes, 2);
    EXPECT_TRUE(ring->get(number));
    EXPECT_FALSE(ring->get(number - FlightRing::kRecords));
}

// A reader beside the writer: each record is whole, or left out. Time and argument are the same number here.
TEST(FlightRecorder, NoRecordIsTorn) {
    const auto ring = std::make_unique<FlightRing>();
    std::atomic<std::uint64_t> written{0};
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (std::uint64_t n = 0; !stop.load(std::memory_order_relaxed); ++n) {
            ring->put(n, Tsc{n & 0xffff'ffff}, FlightEvent::halts, static_cast<std::uint32_t>(n));
            written.store(n + 1, std::memory_order_release);
        }
    });
    std::uint64_t whole = 0, torn = 0;
    while (whole < 200'000) {
        const FlightLog log{ring.get(), written.load(std::memory_order_acquire)};
        log.for_each_of_last(FlightRing::kRecords, [&](const FlightRecord& record) {
            ++whole;
            if (record.time.value != record.argument || record.event != FlightEvent::halts)
                ++torn;
        });
    }
    stop.store(true, std::memory_order_relaxed);
    writer.join();
    EXPECT_EQ(torn, 0u);
}

TEST(FlightRecorder, ASwitchIsUndone) {
    ASSERT_TRUE(flight_recording.load());
    {
        const FlightRecording off(false);
        EXPECT_FALSE(flight_recording.load());
    }
    EXPECT_TRUE(flight_recording.load());
}

} // namespace
} // namespace spinkick::stress
