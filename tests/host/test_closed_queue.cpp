// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/closed_queue.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace spinkick::stress {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;

TEST(ClosedQueue, WhoIsAloneNeverWaits) {
    for (const std::uint64_t think : {0u, 1u, 1000u})
        EXPECT_EQ((ClosedQueue{1, 100}.waiting_ppm(think)), 0u);
    EXPECT_EQ((ClosedQueue{1, 100}.think_for(5000)), 0u);
}

TEST(ClosedQueue, WithoutThinkTimeAllButOneWait) {
    for (const std::uint32_t workers : {2u, 4u, 20u, 64u}) {
        const auto share = static_cast<double>(ClosedQueue{workers, 5000}.waiting_ppm(0));
        EXPECT_NEAR(share, 1e6 * (workers - 1) / workers, 1e4) << workers;
    }
}

TEST(ClosedQueue, RareMeetingsCostHalfATurn) {
    // Two workers with much think time: the other one is in its turn with probability hold / (think + hold), and is
    // half through on average.
    constexpr double kHold = 2000, kThink = 20'000;
    const double expected =
        kHold / (kThink + kHold) * (kHold / 2) / (kThink + kHold + kHold * kHold / 2 / (kThink + kHold));
    const auto share = static_cast<double>(ClosedQueue{2, 2000}.waiting_ppm(20'000)) / 1e6;
    EXPECT_NEAR(share, expected, 0.1 * expected);
}

TEST(ClosedQueue, FindsTheThinkTimeForAShare) {
    for (const std::uint32_t workers : {2u, 4u, 20u, 64u})
        for (const std::uint64_t hold : {40u, 5000u, 3'000'000u})
            for (const std::uint64_t wanted : {5'000u, 16'000u, 154'000u}) {
                const ClosedQueue queue{workers, hold};
                const auto think = queue.think_for(wanted);
                const auto reached = static_cast<double>(queue.waiting_ppm(think));
                // think_for() is good to 1.6 % of the think time, and the share falls with its square.
                EXPECT_LE(reached, static_cast<double>(wanted)) << workers << " " << hold;
                EXPECT_GT(reached, 0.85 * static_cast<double>(wanted)) << workers << " " << hold << " " << think;
            }
}

TEST(ClosedQueue, MoreContentionNeedsLessThought) {
    const ClosedQueue queue{20, 2000};
    EXPECT_GT(queue.think_for(5'000), queue.think_for(16'000));
    EXPECT_GT(queue.think_for(16'000), queue.think_for(154'000));
    EXPECT_GT(queue.think_for(154'000), 0u);
    EXPECT_EQ(queue.think_for(kMillion), 0u); // nobody can wait all the time
}

TEST(ClosedQueue, LongTurnsDoNotOverflow) {
    const auto share = static_cast<double>(ClosedQueue{64, std::uint64_t{1} << 36}.waiting_ppm(0));
    EXPECT_NEAR(share, 1e6 * 63 / 64, 1e4);
}

TEST(ThinkTime, IsEvenUpToTwiceTheMean) {
    EXPECT_EQ(think_time(1000, 0), 0u);
    EXPECT_EQ(think_time(1000, ~0ull), 1999u);
    EXPECT_EQ(think_time(1000, 1ull << 63), 1000u);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i)
        sum += think_time(1000, splitmix64(i));
    EXPECT_NEAR(static_cast<double>(sum) / 10'000, 1000, 20);
}

} // namespace
} // namespace spinkick::stress
