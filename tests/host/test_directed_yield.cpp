// SPDX-License-Identifier: BSD-2-Clause
//
// Which vCPU a spinning waiter yields to, by both methods, and what is counted of it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/locks.hpp"
#include "tests/host/backend_threads.hpp"
#include "tests/host/lock_workout.hpp"
#include "tests/host/tuning_fixture.hpp"

namespace spinkick::host {
namespace {

using sync::LockEvent;
using sync::YieldMethod;

/// Threads that write down whom they yielded to; each number is a back end of its own, which nobody has used before.
template <int kNumber>
struct Yielding : Threads {
    static void yield_to(CpuId cpu) noexcept {
        target.store(static_cast<int>(raw(cpu)), std::memory_order_relaxed);
        Threads::yield_to(cpu);
    }
    static bool can_yield() noexcept { return offered.load(std::memory_order_relaxed); }

    static inline std::atomic<int> target{-1};
    static inline std::atomic<bool> offered{true};
};

struct Mute : Threads {
    static constexpr bool kTellsPreemption = false;
};

static_assert(sync::DirectedYield<Threads>::kOffered);
static_assert(!sync::DirectedYield<SpinningThreads>::kOffered, "nothing tells it who is preempted");
static_assert(!sync::DirectedYield<Mute>::kOffered);

/// Marks vCPUs as preempted, for as long as it lives.
class Preempted {
  public:
    Preempted(std::initializer_list<std::uint32_t> cpus) : cpus_(cpus) {
        for (const auto cpu : cpus_)
            Threads::set_preempted(CpuId{cpu}, true);
    }
    ~Preempted() { end(); }
    Preempted(const Preempted&) = delete;
    Preempted& operator=(const Preempted&) = delete;
    void end() {
        for (const auto cpu : cpus_)
            Threads::set_preempted(CpuId{cpu}, false);
    }

  private:
    std::vector<std::uint32_t> cpus_;
};

/// What one CPU has counted since this began.
class Counted {
  public:
    explicit Counted(CpuId cpu) : cpu_(cpu), before_(Threads::events(cpu)) {}
    [[nodiscard]] std::uint64_t operator[](LockEvent event) const {
        return Threads::events(cpu_)[event] - before_[event];
    }

  private:
    CpuId cpu_;
    EventCounts before_;
};

class DirectedYield : public TuningFixture {
  protected:
    static constexpr CpuId kMe{100};

    DirectedYield() : was_(this_thread_cpu.id) { this_thread_cpu.id = kMe; }
    ~DirectedYield() override { this_thread_cpu.id = was_; }

    /// Spins up to the next look; whom it yielded to, or -1.
    template <class B>
    static int look() {
        B::target = -1;
        for (std::uint32_t spin = 0; spin < sync::DirectedYield<B>::kSpinsBetweenLooks; ++spin)
            sync::DirectedYield<B>::spun();
        return B::target;
    }

  private:
    CpuId was_;
};

TEST_F(DirectedYield, IsOffByDefault) {
    using B = Yielding<0>;
    const Preempted preempted{5};
    const Counted counted(kMe);
    EXPECT_EQ(look<B>(), -1);
    EXPECT_EQ(counted[LockEvent::directed_yield_tried], 0u);
}

TEST_F(DirectedYield, IsNotTriedWhereItIsNotOffered) {
    using B = Yielding<1>;
    sync::tuning.directed_yield = YieldMethod::flags;
    const Preempted preempted{5};
    const Counted counted(kMe);
    B::offered = false;
    EXPECT_EQ(look<B>(), -1);
    EXPECT_EQ(counted[LockEvent::directed_yield_tried], 0u);
    B::offered = true;
    EXPECT_EQ(look<B>(), 5);
}

TEST_F(DirectedYield, ByFlagsGivesEveryPreemptedVcpuItsTurn) {
    using B = Yielding<2>;
    sync::tuning.directed_yield = YieldMethod::flags;
    Preempted preempted{5, 130, 255, raw(kMe)}; // itself never
    const Counted counted(kMe);
    EXPECT_EQ(look<B>(), 5);
    EXPECT_EQ(look<B>(), 130);
    EXPECT_EQ(look<B>(), 255);
    EXPECT_EQ(look<B>(), 5);
    EXPECT_EQ(counted[LockEvent::directed_yield_ran], 0u) << "none has run";
    preempted.end();
    EXPECT_EQ(look<B>(), -1);
    EXPECT_EQ(look<B>(), -1);
    EXPECT_EQ(counted[LockEvent::directed_yield_tried], 4u);
    EXPECT_EQ(counted[LockEvent::directed_yield_preempted], 4u);
    EXPECT_EQ(counted[LockEvent::directed_yield_stale], 0u);
    EXPECT_EQ(counted[LockEvent::directed_yield_scan], 0u);
    EXPECT_EQ(counted[LockEvent::directed_yield_ran], 1u) << "the last one, counted once";
}

TEST_F(DirectedYield, ByBitmapLooksAtAllOnlyWhenTheBitmapIsUsedUp) {
    using B = Yielding<3>;
    sync::tuning.directed_yield = YieldMethod::bitmap;
    Preempted preempted{5, 130, 255, raw(kMe)};
    const Counted counted(kMe);
    EXPECT_EQ(look<B>(), 5);
    EXPECT_EQ(look<B>(), 130);
    EXPECT_EQ(look<B>(), 255);
    EXPECT_EQ(look<B>(), 5);
    EXPECT_EQ(counted[LockEvent::directed_yield_scan], 1u);

    // Another CPU goes by what this one has found.
    this_thread_cpu.id = CpuId{101};
    const Counted other(CpuId{101});
    EXPECT_EQ(look<B>(), 5);
    EXPECT_EQ(other[LockEvent::directed_yield_scan], 0u);
    this_thread_cpu.id = kMe;

    // The bitmap does not know that they run again.
    preempted.end();
    EXPECT_EQ(look<B>(), -1);
    EXPECT_EQ(counted[LockEvent::directed_yield_stale], 3u);
    EXPECT_EQ(counted[LockEvent::directed_yield_scan], 2u);
    const Preempted later{7};
    EXPECT_EQ(look<B>(), 7);
    EXPECT_EQ(counted[LockEvent::directed_yield_scan], 3u);
    EXPECT_EQ(counted[LockEvent::directed_yield_tried],
              counted[LockEvent::directed_yield_preempted] + counted[LockEvent::directed_yield_stale]);
    EXPECT_EQ(counted[LockEvent::directed_yield_ran], 1u);
}

TEST_F(DirectedYield, ForgetsWhatOthersHaveFound) {
    using B = Yielding<4>;
    sync::tuning.directed_yield = YieldMethod::bitmap;
    const Preempted preempted{5};
    const Counted counted(kMe);
    EXPECT_EQ(look<B>(), 5);
    sync::DirectedYield<B>::forget();
    EXPECT_EQ(look<B>(), 5);
    EXPECT_EQ(counted[LockEvent::directed_yield_scan], 2u);
}

using B = Yielding<5>;
template <class L>
class YieldingLock : public TuningFixture {};
struct LockName {
    template <class L>
    static std::string GetName(int) {
        std::string name = L::kName;
        for (char& c : name)
            if (c == '-')
                c = '_';
        return name;
    }
};
using YieldingLocks =
    sync::ConcatLists<sync::SleepingLocks<B>,
                      sync::TypeList<sync::TasLock<B>, sync::TicketLock<B>, sync::QueuedLock<B>>>::type;
TYPED_TEST_SUITE(YieldingLock, YieldingLocks::Apply<::testing::Types>, LockName);

// Two waiters: the first and one behind it, whose loops are not the same in the queued locks.
TYPED_TEST(YieldingLock, WaitersYieldToAPreemptedHolder) {
    static constinit TypeParam lock;
    constexpr CpuId kHolder{110};
    constexpr CpuId kWaiters[] = {CpuId{111}, CpuId{112}};
    for (const auto method : {YieldMethod::flags, YieldMethod::bitmap}) {
        set_thresholds(std::uint64_t{1} << 63);
        sync::tuning.directed_yield = method;
        const Counted first(kWaiters[0]);
        const Counted second(kWaiters[1]);
        std::atomic<bool> held{false};
        std::atomic<bool> release{false};
        Crew crew;
        crew.add(kHolder, [&] {
            lock.lock();
            held = true;
            while (!release)
                std::this_thread::yield();
            lock.unlock();
        });
        ASSERT_TRUE(eventually([&] { return held.load(); }));
        for (const CpuId cpu : kWaiters)
            crew.add(cpu, [&] {
                lock.lock();
                lock.unlock();
            });
        // A look that finds the bitmap used up fills it and yields to nobody; if the holder runs again just then, the
        // waiter has no yield of its own to follow up. So the holder is preempted until both have seen it come back.
        const auto both = [&](LockEvent event, std::uint64_t more_than_first, std::uint64_t more_than_second) {
            return first[event] > more_than_first && second[event] > more_than_second;
        };
        bool seen_to_run = false;
        for (int attempt = 0; attempt < 200 && !seen_to_run; ++attempt) {
            const auto first_before = first[LockEvent::directed_yield_preempted];
            const auto second_before = second[LockEvent::directed_yield_preempted];
            {
                const Preempted preempted{raw(kHolder)};
                if (!eventually([&] { return both(LockEvent::directed_yield_preempted, first_before, second_before); }))
                    break;
                EXPECT_EQ(B::target, static_cast<int>(raw(kHolder)));
            }
            seen_to_run =
                eventually([&] { return both(LockEvent::directed_yield_ran, 0, 0); }, std::chrono::milliseconds(200));
        }
        EXPECT_TRUE(seen_to_run);
        release = true;
        crew.join();
    }
}

} // namespace
} // namespace spinkick::host
