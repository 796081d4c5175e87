// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/lock_tracking.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "kernel/stress/lock_text.hpp"
#include "tests/host/console_capture.hpp"

namespace spinkick::stress {
namespace {

constexpr LockKind kKind{.name = "ticket",
                         .backend = "native",
                         .layout = sync::WordLayout::ticket,
                         .word = [](const void*) noexcept { return std::uint64_t{0x0003'0001}; },
                         .waiter = nullptr};
constexpr std::array<char, 4> kLocks{};
const void* lock(std::size_t n) { return &kLocks.at(n); }

class Tracking : public testing::Test {
  protected:
    void take(std::uint32_t cpu, std::size_t n) {
        want(cpu, n);
        tracking->of(CpuId{cpu}).acquired(lock(n));
    }
    void want(std::uint32_t cpu, std::size_t n) { tracking->of(CpuId{cpu}).wants(lock(n), kKind); }
    std::size_t cycle(std::uint32_t cpu) { return tracking->cycle_from(CpuId{cpu}, 8, out); }

    std::unique_ptr<LockTracking> tracking = std::make_unique<LockTracking>();
    std::array<CpuId, 16> out{};
};

TEST_F(Tracking, AWaitIsTheInnermostClaimThatIsNotHeld) {
    take(1, 0);
    EXPECT_FALSE(tracking->of(CpuId{1}).waits_for());
    want(1, 1);
    ASSERT_TRUE(tracking->of(CpuId{1}).waits_for());
    EXPECT_EQ(tracking->of(CpuId{1}).waits_for()->lock, lock(1));
    take(1, 2); // in an interrupt handler
    EXPECT_EQ(tracking->of(CpuId{1}).waits_for()->lock, lock(1));
    EXPECT_EQ(tracking->holder_of(lock(2), 8), CpuId{1});
    EXPECT_FALSE(tracking->holder_of(lock(1), 8)) << "wanted, not held";
}

TEST_F(Tracking, LocksAreGivenBackInAnyOrder) {
    auto& claims = tracking->of(CpuId{0});
    take(0, 0), take(0, 1), take(0, 2);
    claims.released(lock(1));
    EXPECT_EQ(claims.count(), 3u);
    EXPECT_FALSE(claims.holds(lock(1)));
    claims.released(lock(2));
    EXPECT_EQ(claims.count(), 1u) << "the one that was given up before goes with it";
    claims.released(lock(0));
    EXPECT_EQ(claims.count(), 0u);
}

TEST_F(Tracking, MoreThanItKeepsIsForgottenAndDoesNoHarm) {
    auto& claims = tracking->of(CpuId{0});
    for (std::uint32_t n = 0; n < LockClaims::kMost + 3; ++n)
        claims.wants(lock(0), kKind);
    EXPECT_EQ(claims.count(), LockClaims::kMost);
    for (std::uint32_t n = 0; n < LockClaims::kMost + 3; ++n)
        claims.released(lock(0));
    EXPECT_EQ(claims.count(), 0u);
}

TEST_F(Tracking, FindsACycleFromInsideAndFromItsTail) {
    take(1, 0), take(2, 1), take(3, 2);
    want(1, 1), want(2, 2), want(3, 0);
    want(4, 0); // waits too, and is no part of it
    EXPECT_EQ(cycle(1), 3u);
    EXPECT_EQ(cycle(4), 3u);
    EXPECT_EQ(out[0], CpuId{1});
    EXPECT_EQ(out[1], CpuId{2});
    EXPECT_EQ(out[2], CpuId{3});
}

TEST_F(Tracking, ACpuThatWaitsForItselfIsACycleOfOne) {
    take(1, 0);
    want(1, 0);
    EXPECT_EQ(cycle(1), 1u);
}

TEST_F(Tracking, NoCycleWhereAHolderDoesNotWait) {
    take(1, 0), want(2, 0);
    EXPECT_EQ(cycle(2), 0u);
    EXPECT_EQ(cycle(1), 0u);
    want(3, 3); // nobody holds it
    EXPECT_EQ(cycle(3), 0u);
}

TEST(LockText, WordsAreReadByTheirLayout) {
    const auto text = [](sync::WordLayout layout, std::uint64_t word) {
        std::array<char, 128> storage{};
        TextBuffer out(storage);
        describe_word(out, layout, word);
        return std::string(out.view());
    };
    using sync::WordLayout;
    EXPECT_EQ(text(WordLayout::flag, 1), "held");
    EXPECT_EQ(text(WordLayout::owner, 0x4'0000'0001), "held, owner CPU 3");
    EXPECT_EQ(text(WordLayout::spinners, 0x2'0001), "held, 2 waiters sleep or are about to");
    EXPECT_EQ(text(WordLayout::ticket, 0x0003'0001), "serves 1, next number 3: 2 hold or wait");
    EXPECT_EQ(text(WordLayout::ticket, 0x0001'ffff), "serves 65535, next number 1: 2 hold or wait");
    EXPECT_EQ(text(WordLayout::pv_ticket, 0x0006'0003), "serves 2, next number 6: 2 hold or wait, somebody sleeps");
    EXPECT_EQ(text(WordLayout::queued, 0), "free, nobody queues");
    EXPECT_EQ(text(WordLayout::queued, (std::uint64_t{(5 + 1) << 2 | 1} << 16) | 0x103),
              "held, and the queue head sleeps, pending, tail CPU 5 node 1");
}

} // namespace
} // namespace spinkick::stress
