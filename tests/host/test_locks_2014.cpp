// SPDX-License-Identifier: BSD-2-Clause
//
// What the queued locks of 2014 have that others have not: a queue that can be left from its middle, an unlock that
// walks it, and a queue head that kicks the holder. Each case is made to happen: waiters are stopped where they must
// not be in the way, by an interrupt whose handler does not return until it may.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/sync/locks.hpp"
#include "tests/host/backend_threads.hpp"
#include "tests/host/lock_workout.hpp"
#include "tests/host/tuning_fixture.hpp"

namespace spinkick::host {
namespace {

using namespace std::chrono_literals;
using sync::LockEvent;
using sync::Stealing;

using UnfairQueued = sync::UnfairQueuedLock<SpinningThreads>;
using UnfairPvQueued = sync::UnfairPvQueuedLock<Threads>;
using PvQueued2014 = sync::PvQueued2014Lock<Threads>;
using PvQueued = sync::PvQueuedLock<Threads>;

constexpr std::uint64_t kForEver = std::uint64_t{1} << 63;

EventCounts operator-(EventCounts after, const EventCounts& before) {
    for (std::size_t e = 0; e < sync::kLockEvents; ++e)
        after.values[e] -= before.values[e];
    return after;
}

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

std::uint64_t tail_of(std::uint64_t word) { return word >> 16; }

/// A queue of the test's own making: waiters come one after the other, and each may be stopped.
template <class L>
class Queue {
  public:
    explicit Queue(L& lock) : lock_(lock) {}
    ~Queue() {
        for (unsigned n = 0; n < kMostCpus; ++n)
            go_on(CpuId{n});
        crew_.join();
    }

    /// Returns when the waiter is in the queue. It calls `section` with the lock held, if there is one.
    void add(CpuId cpu, std::function<void()> section = {}) {
        const std::uint64_t tail = tail_of(lock_.word());
        crew_.add(cpu, [this, cpu, section = std::move(section)] {
            this_thread_cpu.handler = [](void* self) { static_cast<Queue*>(self)->stop_here(); };
            this_thread_cpu.context = this;
            lock_.lock();
            served_.push_back(cpu);
            if (section)
                section();
            lock_.unlock();
            ++done_;
        });
        EXPECT_TRUE(eventually([&] { return tail_of(lock_.word()) != tail; }));
    }

    /// Returns when the waiter stands still.
    void stop(CpuId cpu) {
        auto& gate = gates_[index(cpu)];
        gate.closed = true;
        Threads::interrupt(cpu);
        EXPECT_TRUE(eventually([&] { return gate.stopped.load(); }));
    }
    void go_on(CpuId cpu) { gates_[index(cpu)].closed = false; }

    [[nodiscard]] bool have_left(unsigned count) {
        return eventually([&] { return done_ == count; });
    }
    /// In order; only when nobody can be about to be served.
    [[nodiscard]] const std::vector<CpuId>& served() const { return served_; }

  private:
    static constexpr unsigned kMostCpus = 128;
    struct Gate {
        std::atomic<bool> closed{false};
        std::atomic<bool> stopped{false};
    };

    void stop_here() {
        Gate& gate = gates_[index(this_thread_cpu.id)];
        gate.stopped = true;
        while (gate.closed)
            std::this_thread::sleep_for(50us);
        gate.stopped = false;
    }

    L& lock_;
    std::array<Gate, kMostCpus> gates_{};
    std::vector<CpuId> served_; // under the lock
    std::atomic<unsigned> done_{0};
    Crew crew_;
};

constexpr CpuId kHead{60};
constexpr CpuId kMiddle{61};
constexpr CpuId kEnd{62};

template <class L>
class UnfairLock : public TuningFixture {
  protected:
    UnfairLock() {
        set_thresholds(kForEver); // nobody sleeps unless a test wants it
        sync::tuning.steal_interval = 1;
    }
};
using UnfairLocks = ::testing::Types<UnfairQueued, UnfairPvQueued>;
TYPED_TEST_SUITE(UnfairLock, UnfairLocks, LockName);

TYPED_TEST(UnfairLock, IsLeftFromTheMiddle) {
    static constinit TypeParam lock;
    lock.lock();
    {
        Queue queue(lock);
        queue.add(kHead);
        queue.stop(kHead);
        queue.add(kMiddle);
        queue.add(kEnd);
        queue.stop(kEnd);
        const std::uint64_t tail = tail_of(lock.word());
        const EventCounts before = Threads::events();
        lock.unlock();
        ASSERT_TRUE(queue.have_left(1));
        EXPECT_EQ(queue.served(), std::vector{kMiddle});
        const EventCounts counts = Threads::events() - before;
        EXPECT_EQ(counts[LockEvent::queue_steal], 1u);
        EXPECT_EQ(counts[LockEvent::queue_steal_middle], 1u);
        EXPECT_EQ(tail_of(lock.word()), tail) << "the one at the end is still there";
        // The others must find each other past the gap: the head is served first, and makes the end head.
        sync::tuning.stealing = Stealing::off;
        queue.go_on(kEnd);
        queue.go_on(kHead);
        ASSERT_TRUE(queue.have_left(3));
        EXPECT_EQ(queue.served(), (std::vector{kMiddle, kHead, kEnd}));
    }
    EXPECT_EQ(lock.word(), 0u);
    EXPECT_TRUE(TypeParam::at_rest());
}

TYPED_TEST(UnfairLock, IsLeftFromTheEnd) {
    static constinit TypeParam lock;
    lock.lock();
    {
        Queue queue(lock);
        queue.add(kHead);
        queue.stop(kHead);
        const std::uint64_t tail = tail_of(lock.word());
        queue.add(kMiddle);
        const EventCounts before = Threads::events();
        lock.unlock();
        ASSERT_TRUE(queue.have_left(1));
        const EventCounts counts = Threads::events() - before;
        EXPECT_EQ(counts[LockEvent::queue_steal], 1u);
        EXPECT_EQ(counts[LockEvent::queue_steal_middle], 0u);
        EXPECT_EQ(tail_of(lock.word()), tail) << "the head is the last again";
        // Whoever comes now stands behind the head, and must be found there.
        ASSERT_TRUE(lock.try_lock()) << "it is free, and try_lock steals";
        sync::tuning.stealing = Stealing::off;
        queue.add(kEnd);
        lock.unlock();
        queue.go_on(kHead);
        ASSERT_TRUE(queue.have_left(3));
        EXPECT_EQ(queue.served(), (std::vector{kMiddle, kHead, kEnd}));
    }
    EXPECT_EQ(lock.word(), 0u);
    EXPECT_TRUE(TypeParam::at_rest());
}

TYPED_TEST(UnfairLock, IsFairWithStealingOff) {
    static constinit TypeParam lock;
    sync::tuning.stealing = Stealing::off;
    set_thresholds(kFewSpins);
    lock.lock();
    Queue queue(lock);
    std::vector<CpuId> arrived;
    for (std::uint32_t n = 1; n <= 12; ++n) {
        queue.add(CpuId{n});
        arrived.push_back(CpuId{n});
    }
    lock.unlock();
    ASSERT_TRUE(queue.have_left(12));
    EXPECT_EQ(queue.served(), arrived);
}

TYPED_TEST(UnfairLock, StealsAsFarAsItMay) {
    static constinit TypeParam lock;
    set_thresholds(kFewSpins);
    const auto stolen = [](Stealing stealing) {
        sync::tuning.stealing = stealing;
        const EventCounts before = Threads::events();
        const auto result = work_out(lock, 6, 300ms, false, [](TypeParam& l) {
            l.lock();
            return true;
        });
        EXPECT_EQ(result.intrusions, 0u);
        EXPECT_GT(result.visits, 0u);
        return Threads::events() - before;
    };
    const EventCounts off = stolen(Stealing::off);
    EXPECT_EQ(off[LockEvent::pv_lock_stealing], 0u);
    EXPECT_EQ(off[LockEvent::queue_steal], 0u);
    EXPECT_EQ(stolen(Stealing::entry)[LockEvent::queue_steal], 0u);
    EXPECT_EQ(lock.word(), 0u);
}

TYPED_TEST(UnfairLock, WorksAtEveryInterval) {
    static constinit TypeParam lock;
    for (const std::uint32_t interval : {0u, 1u, 1u << 10, ~0u}) {
        sync::tuning.steal_interval = interval;
        const auto result = work_out(lock, 6, 100ms, false, [](TypeParam& l) {
            l.lock();
            return true;
        });
        EXPECT_EQ(result.intrusions, 0u) << interval;
        EXPECT_GT(result.visits, 0u) << interval;
    }
}

// The further behind, the more rarely; up to a bound.
TEST_F(TuningFixture, AttemptsToStealGetRarerWithEachPlace) {
    struct Node {
        std::atomic<Node*> next{nullptr};
        std::atomic<Node*> prev{nullptr};
        std::atomic<std::uint32_t> interval_behind{0};
        std::uint16_t depth = 0;
    };
    using Queue = sync::UnfairQueue<SpinningThreads, Node>;
    std::array<Node, 12> nodes;
    Queue::place_first(nodes[0]);
    for (std::size_t n = 1; n < nodes.size(); ++n)
        EXPECT_EQ(Queue::place_behind(nodes[n], nodes[n - 1]), std::min<std::size_t>(8u << (n - 1), 1024)) << n;
    typename Queue::Chances chances(8);
    for (unsigned look = 1; look <= 64; ++look)
        EXPECT_EQ(chances.next(), look % 8 == 0) << look;
}

// A lock that is free while its queue head sleeps on (its kick is dropped) is there for the taking, or is not.
TEST_F(TuningFixture, StealingOffBindsPvQueuedToo) {
    static constinit PvQueued lock;
    set_thresholds(1);
    lock.lock();
    Queue queue(lock);
    queue.add(kHead);
    // Asleep, not only marked: it looks at the word once more in between.
    ASSERT_TRUE(eventually([&] { return (lock.word() & 0xff) == 3 && Threads::is_asleep(kHead); }))
        << "the head never went to sleep";
    sync::tuning.drop_every_nth_kick = 1;
    lock.unlock();
    sync::tuning.drop_every_nth_kick = 0;
    sync::tuning.stealing = Stealing::off;
    const std::uint64_t stolen = Threads::events()[LockEvent::pv_lock_stealing];
    queue.add(kEnd); // it would be served at once
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(Threads::events()[LockEvent::pv_lock_stealing], stolen);
    Threads::rescue(kHead);
    ASSERT_TRUE(queue.have_left(2));
    EXPECT_EQ(queue.served(), (std::vector{kHead, kEnd}));
}

template <class L>
class PvLock2014 : public TuningFixture {};
using PvLocks2014 = ::testing::Types<PvQueued2014, UnfairPvQueued>;
TYPED_TEST_SUITE(PvLock2014, PvLocks2014, LockName);

TYPED_TEST(PvLock2014, UnlockWalksTheWholeQueue) {
    static constinit TypeParam lock;
    constexpr unsigned kSleepers = 20;
    set_thresholds(1);
    lock.lock(); // by this thread, which is CPU 0
    Queue queue(lock);
    for (std::uint32_t n = 1; n <= kSleepers; ++n) {
        queue.add(CpuId{n});
        ASSERT_TRUE(eventually([n] { return Threads::is_asleep(CpuId{n}); })) << n;
    }
    const EventCounts before = Threads::events(CpuId{0});
    lock.unlock();
    const EventCounts counts = Threads::events(CpuId{0}) - before;
    EXPECT_EQ(counts[LockEvent::queue_walk], 1u);
    EXPECT_EQ(counts[LockEvent::queue_walk_nodes], kSleepers);
    EXPECT_EQ(counts[LockEvent::pv_kick_unlock], 1u);
    EXPECT_TRUE(queue.have_left(kSleepers));
    EXPECT_EQ(lock.word(), 0u);
    EXPECT_TRUE(TypeParam::at_rest());
}

// An interrupt is no reason to stay awake.
TYPED_TEST(PvLock2014, SleepsAgainAfterAWakeUpForNothing) {
    static constinit TypeParam lock;
    lock.lock();
    Queue queue(lock);
    for (const CpuId cpu : {kHead, kMiddle}) {
        queue.add(cpu);
        ASSERT_TRUE(eventually([cpu] { return Threads::is_asleep(cpu); }));
    }
    for (const CpuId cpu : {kHead, kMiddle, kHead, kMiddle}) {
        const auto slept = [cpu] { return Threads::events(cpu)[LockEvent::hibernate_stats]; };
        const std::uint64_t before = slept();
        Threads::interrupt(cpu);
        ASSERT_TRUE(eventually([&] { return slept() > before && Threads::is_asleep(cpu); })) << raw(cpu);
    }
    lock.unlock();
    EXPECT_TRUE(queue.have_left(2));
}

TYPED_TEST(PvLock2014, CountsAnUnlockOfALockThatNobodyHolds) {
    static constinit TypeParam lock;
    const std::uint64_t corrupt = Threads::events()[LockEvent::lock_corrupt];
    lock.unlock();
    EXPECT_EQ(Threads::events()[LockEvent::lock_corrupt], corrupt + 1);
    EXPECT_EQ(lock.word(), 0u);
}

/// A holder that was in the queue, and the head behind it, which therefore knows the holder.
template <class L>
class KnownHolder {
  public:
    static constexpr CpuId kHolder{63};

    enum class Holder { runs, preempted, sleeps };

    /// What both counted until the head has made up its mind.
    EventCounts run(Holder what) {
        held_ = release_ = false;
        Threads::set_preempted(kHolder, what == Holder::preempted);
        lock_.lock();
        other_.lock();
        EventCounts counts;
        {
            Queue queue(lock_);
            queue.add(kHolder, [this, what] {
                held_ = true;
                if (what == Holder::sleeps) {
                    other_.lock();
                    other_.unlock();
                }
                EXPECT_TRUE(eventually([this] { return release_.load(); }));
            });
            queue.add(kHead);
            queue.stop(kHead);
            lock_.unlock();
            EXPECT_TRUE(eventually([this] { return held_.load(); }));
            if (what == Holder::sleeps) {
                EXPECT_TRUE(eventually([] { return Threads::is_asleep(kHolder); }));
            }
            const EventCounts before = Threads::events(kHead);
            queue.go_on(kHead);
            // Asleep as head (or soon): it is past the middle of its first spin.
            EXPECT_TRUE(eventually([&] {
                const EventCounts now = Threads::events(kHead) - before;
                return now[LockEvent::pv_wait_head] != 0;
            }));
            counts = Threads::events(kHead) - before;
            other_.unlock();
            release_ = true;
            EXPECT_TRUE(queue.have_left(2));
        }
        Threads::set_preempted(kHolder, false);
        return counts;
    }

  private:
    static inline constinit L lock_;
    static inline constinit L other_;
    std::atomic<bool> held_{false};
    std::atomic<bool> release_{false};
};

TYPED_TEST(PvLock2014, SaysWhatBecameOfAKickToTheHolder) {
    using Known = KnownHolder<TypeParam>;
    Known known;
    const auto expect = [](const EventCounts& counts, unsigned running, unsigned preempted, unsigned halted) {
        EXPECT_EQ(counts[LockEvent::kick_holder_tried], running + preempted + halted);
        EXPECT_EQ(counts[LockEvent::kick_holder_running], running);
        EXPECT_EQ(counts[LockEvent::kick_holder_preempted], preempted);
        EXPECT_EQ(counts[LockEvent::kick_holder_halted], halted);
    };
    expect(known.run(Known::Holder::runs), 1, 0, 0);
    expect(known.run(Known::Holder::preempted), 0, 1, 0);
    expect(known.run(Known::Holder::sleeps), 0, 0, 1);
    sync::tuning.kick_holder = false;
    const EventCounts off = known.run(Known::Holder::runs);
    expect(off, 0, 0, 0);
    EXPECT_EQ(off[LockEvent::kick_holder_unknown], 0u);
}

TYPED_TEST(PvLock2014, DoesNotKnowAHolderThatWasNotInTheQueue) {
    static constinit TypeParam lock;
    const EventCounts before = Threads::events(kHead);
    lock.lock(); // fast path
    Queue queue(lock);
    queue.add(kHead);
    EXPECT_TRUE(eventually([] { return Threads::is_asleep(kHead); }));
    const EventCounts counts = Threads::events(kHead) - before;
    EXPECT_GT(counts[LockEvent::kick_holder_unknown], 0u);
    EXPECT_EQ(counts[LockEvent::kick_holder_tried], 0u);
    lock.unlock();
    EXPECT_TRUE(queue.have_left(1));
}

// A pending CPU has no node and cannot sleep: it must not stay in front of the queue for as long as the lock is held.
TEST_F(TuningFixture, ThePendingCpuOf2014GivesUp) {
    static constinit PvQueued2014 lock;
    lock.lock();
    Queue queue(lock);
    queue.add(kHead); // returns when it has queued, with nobody before it
    EXPECT_EQ(lock.word() & 0xff00, 0u);
    EXPECT_TRUE(eventually([] { return Threads::is_asleep(kHead); }));
    lock.unlock();
    EXPECT_TRUE(queue.have_left(1));
}

} // namespace
} // namespace spinkick::host
