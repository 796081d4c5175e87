// SPDX-License-Identifier: BSD-2-Clause
//
// Every lock of kernel/sync/locks.hpp, on host threads. One body serves all locks; what differs between them is asked
// of the lock (kExcludes, kIsFifo, kSleeps), never of its name.

#include <csetjmp>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/sync/guard.hpp"
#include "kernel/sync/locks.hpp"
#include "tests/host/backend_threads.hpp"
#include "tests/host/lock_workout.hpp"
#include "tests/host/tuning_fixture.hpp"

namespace spinkick::host {
namespace {

using namespace std::chrono_literals;
using sync::LockEvent;
using sync::WaitEarly;

using AllLocks = sync::CrossLocks<SpinningThreads, Threads>;
static_assert(sync::kAllAreLocks<AllLocks>);

template <class... Ls>
using Excluding =
    typename sync::ConcatLists<std::conditional_t<Ls::kExcludes, sync::TypeList<Ls>, sync::TypeList<>>...>::type;
template <class... Ls>
using Fifo = typename sync::ConcatLists<std::conditional_t<Ls::kIsFifo, sync::TypeList<Ls>, sync::TypeList<>>...>::type;

template <class L>
class EveryLock : public TuningFixture {};

struct LockName {
    template <class L>
    static std::string GetName(int) {
        std::string name = std::string(L::kName) + "_" + L::Machine::kName;
        for (char& c : name)
            if (c == '-')
                c = '_';
        return name;
    }
};
TYPED_TEST_SUITE(EveryLock, AllLocks::Apply<::testing::Types>, LockName);

template <class L>
class ExcludingLock : public TuningFixture {};
TYPED_TEST_SUITE(ExcludingLock, AllLocks::Apply<Excluding>::Apply<::testing::Types>, LockName);

template <class L>
class FifoLock : public TuningFixture {};
TYPED_TEST_SUITE(FifoLock, AllLocks::Apply<Fifo>::Apply<::testing::Types>, LockName);

template <class L>
void expect_exclusion(unsigned threads_per_cpu) {
    static constinit L lock;
    const unsigned threads = threads_per_cpu * std::max(2u, std::thread::hardware_concurrency());
    const auto duration = L::kExcludes ? 300ms : 60'000ms;
    const auto result = work_out(lock, threads, duration, !L::kExcludes, [](L& l) {
        l.lock();
        return true;
    });
    if (L::kExcludes) {
        EXPECT_EQ(result.intrusions, 0u) << "of " << result.visits;
        EXPECT_GT(result.visits, 0u);
    } else {
        EXPECT_GT(result.intrusions, 0u) << "the negative control went unnoticed in " << result.visits << " visits";
    }
}

TYPED_TEST(EveryLock, ExcludesOrIsReported) { expect_exclusion<TypeParam>(1); }
TYPED_TEST(EveryLock, ExcludesOrIsReportedAt4Times) { expect_exclusion<TypeParam>(4); }
TYPED_TEST(EveryLock, ExcludesOrIsReportedAt16Times) { expect_exclusion<TypeParam>(16); }

TYPED_TEST(EveryLock, TryLockExcludesOrIsReported) {
    static constinit TypeParam lock;
    const auto duration = TypeParam::kExcludes ? 300ms : 60'000ms;
    // Every CPU waits and tries in turn: both ways in must respect each other.
    const auto result = work_out(lock, 4, duration, !TypeParam::kExcludes, [](TypeParam& l) {
        thread_local unsigned turn = 0;
        if (++turn % 2 == 0)
            return l.try_lock();
        l.lock();
        return true;
    });
    EXPECT_EQ(result.intrusions == 0, TypeParam::kExcludes) << result.intrusions << " of " << result.visits;
}

TYPED_TEST(ExcludingLock, TryLockSaysWhetherItTookTheLock) {
    static constinit TypeParam lock;
    const std::uint64_t free_word = lock.word();
    ASSERT_TRUE(lock.try_lock());
    EXPECT_NE(lock.word(), free_word);
    Crew(1, [](CpuId) { EXPECT_FALSE(lock.try_lock()); });
    lock.unlock();
    Crew(1, [](CpuId) {
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    });
}

TYPED_TEST(ExcludingLock, WorksPastTheWrapOfItsNumbers) {
    static constinit TypeParam lock;
    for (unsigned n = 0; n < 70'000; ++n) {
        if (n % 2 == 0) {
            lock.lock();
        } else {
            ASSERT_TRUE(lock.try_lock()) << n;
        }
        ASSERT_FALSE(lock.try_lock()) << n;
        lock.unlock();
    }
}

TYPED_TEST(EveryLock, DifferentLocksNest) {
    static constinit std::array<TypeParam, 6> locks;
    std::atomic<unsigned> done{0};
    Crew(4, [&](CpuId) {
        repeat_for(200ms, [] {
            for (auto& lock : locks)
                lock.lock();
            for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock)
                lock->unlock();
        });
        ++done;
    });
    EXPECT_EQ(done, 4u);
}

TYPED_TEST(EveryLock, LeavesTheInterruptMaskAsFound) {
    static constinit TypeParam lock;
    Crew(4, [](CpuId cpu) {
        const bool on = raw(cpu) % 2 == 0;
        this_thread_cpu.interrupts_on = on;
        repeat_for(200ms, [on] {
            lock.lock();
            EXPECT_EQ(this_thread_cpu.interrupts_on, on);
            std::this_thread::yield();
            lock.unlock();
            EXPECT_EQ(this_thread_cpu.interrupts_on, on);
        });
    });
}

TYPED_TEST(EveryLock, GuardsRelease) {
    static constinit TypeParam lock;
    const std::uint64_t free_word = lock.word();
    {
        const sync::Guard guard(lock);
        if (TypeParam::kExcludes) {
            EXPECT_FALSE(lock.try_lock());
        }
    }
    if (TypeParam::kExcludes) {
        EXPECT_TRUE(lock.try_lock());
    }
    lock.unlock();
    {
        const sync::InterruptsOffGuard guard(lock);
        EXPECT_FALSE(this_thread_cpu.interrupts_on);
        if (TypeParam::kExcludes) {
            EXPECT_FALSE(lock.try_lock());
        }
    }
    EXPECT_TRUE(this_thread_cpu.interrupts_on);
    EXPECT_TRUE(TypeParam::kIsFifo || lock.word() == free_word);
}

// A lock that claims FIFO serves in the order of arrival. Arrivals are made one after the other: each waiter is in the
// lock word before the next one starts. Bits 7:0 are left out, since a sleeper's mark may appear there at any time.
TYPED_TEST(FifoLock, ServesInOrderOfArrival) {
    static constinit TypeParam lock;
    constexpr unsigned kWaiters = 12;
    constexpr std::uint64_t kArrivals = 0xffff'ff00;
    for (unsigned round = 0; round < 5; ++round) {
        std::vector<unsigned> served;
        {
            Crew crew;
            lock.lock(); // by this thread, which is CPU 0
            for (unsigned n = 1; n <= kWaiters; ++n) {
                const std::uint64_t before = lock.word() & kArrivals;
                crew.add(CpuId{n}, [&served, n] {
                    lock.lock();
                    served.push_back(n);
                    lock.unlock();
                });
                ASSERT_TRUE(eventually([&] { return (lock.word() & kArrivals) != before; })) << n;
            }
            lock.unlock();
        }
        ASSERT_EQ(served.size(), kWaiters);
        for (unsigned n = 0; n < kWaiters; ++n)
            EXPECT_EQ(served[n], n + 1);
    }
}

// Five waits on one CPU, each interrupted by the next: task, interrupt, higher interrupt, NMI, #DB. The four nodes of a
// queued lock serve the first four; the fifth must get its lock without one.
template <class L>
struct NestedWaits {
    static constexpr unsigned kLevels = 5;
    static constexpr CpuId kVictim{0};

    /// Has four places (nodes, slots) per CPU for those that wait.
    static constexpr std::string_view kName{L::kName};
    static constexpr bool kSlotOnlyInSleep = kName == "pv-ticket";
    static constexpr bool kHasPlaces = kSlotOnlyInSleep || requires { requires L::kHasNodes; };

    static inline constinit std::array<L, kLevels> locks;
    static inline std::atomic<unsigned> entered{0}; ///< levels that have begun to wait
    static inline std::atomic<unsigned> finished{0};

    static void wait_one_level(void*) {
        const unsigned level = entered.fetch_add(1);
        locks[level].lock();
        locks[level].unlock();
        ++finished;
    }

    static std::uint64_t refusals() { return L::Machine::events(kVictim)[LockEvent::lock_no_node]; }

    static void run() {
        entered = finished = 0;
        const std::uint64_t refused_before = refusals();
        std::array<std::atomic<bool>, kLevels> held{};
        std::array<std::atomic<bool>, kLevels> release{};
        Crew crew;
        // A holder and a first waiter for each lock; the waiter takes the pending place of the queued lock, so that the
        // victim has to queue.
        for (unsigned level = 0; level < kLevels; ++level) {
            crew.add(CpuId{10 + level}, [&, level] {
                locks[level].lock();
                held[level] = true;
                eventually([&] { return release[level].load(); });
                locks[level].unlock();
            });
            ASSERT_TRUE(eventually([&] { return held[level].load(); }));
            const std::uint64_t before = locks[level].word();
            crew.add(CpuId{20 + level}, [level] {
                locks[level].lock();
                locks[level].unlock();
            });
            if (L::kIsFifo || L::kSleeps) {
                ASSERT_TRUE(eventually([&] { return locks[level].word() != before; }));
            }
        }
        crew.add(kVictim, [] {
            this_thread_cpu.handler = wait_one_level;
            wait_one_level(nullptr);
        });
        for (unsigned level = 0; level < kLevels; ++level) {
            ASSERT_TRUE(eventually([&] { return entered == level + 1; })) << level;
            // Handlers run inside waits only, so each level is where it belongs when it is interrupted: in the queue,
            // or (pv-ticket, whose slot is in use only then) asleep. The last one must have been refused a place.
            if (level + 1 == kLevels) {
                ASSERT_TRUE(eventually([&] { return !kHasPlaces || refusals() > refused_before; }));
            } else if (kSlotOnlyInSleep) {
                ASSERT_TRUE(eventually([] { return Threads::is_asleep(kVictim); })) << level;
            }
            if (level + 1 < kLevels)
                Threads::interrupt(kVictim);
        }
        // Outermost first: its turn comes while four waits lie on top of it. Each must survive that.
        for (auto& r : release) {
            r = true;
            std::this_thread::sleep_for(1ms);
        }
        EXPECT_TRUE(eventually([&] { return finished == kLevels; })) << finished << " of " << kLevels;
    }
};

TYPED_TEST(ExcludingLock, FiveWaitsNestOnOneCpu) {
    const EventCounts before = TypeParam::Machine::events(NestedWaits<TypeParam>::kVictim);
    NestedWaits<TypeParam>::run();
    const EventCounts after = TypeParam::Machine::events(NestedWaits<TypeParam>::kVictim);
    if (NestedWaits<TypeParam>::kHasPlaces && !NestedWaits<TypeParam>::kSlotOnlyInSleep) {
        EXPECT_EQ(after[LockEvent::lock_use_node2] - before[LockEvent::lock_use_node2], 1u);
        EXPECT_EQ(after[LockEvent::lock_use_node3] - before[LockEvent::lock_use_node3], 1u);
        EXPECT_EQ(after[LockEvent::lock_use_node4] - before[LockEvent::lock_use_node4], 1u);
        EXPECT_EQ(after[LockEvent::lock_no_node] - before[LockEvent::lock_no_node], 1u);
    }
}

// A watchdog may throw a CPU out of lock() (here by longjmp from the spin hint). After reset_cpu() it waits for other
// locks of the type as if nothing had been.
thread_local std::jmp_buf out_of_lock;

TYPED_TEST(ExcludingLock, ForgetsAWaitThatWasAbandoned) {
    TypeParam lost; // stays held, so it is not a static
    TypeParam other;
    constexpr CpuId kVictim{30};
    std::atomic<bool> abandoned{false};
    std::atomic<bool> waits_again{false};
    EventCounts before;
    lost.lock();
    other.lock();
    {
        Crew crew;
        std::atomic<bool> waits{false};
        crew.add(CpuId{31}, [&] { // takes the pending place of both
            other.lock();
            other.unlock();
        });
        crew.add(kVictim, [&] {
            this_thread_cpu.handler = [](void*) { std::longjmp(out_of_lock, 1); };
            if (setjmp(out_of_lock) == 0) {
                waits = true;
                lost.lock();
                ADD_FAILURE() << "took a lock that is held";
            }
            this_thread_cpu.handler = nullptr;
            TypeParam::reset_cpu(kVictim);
            before = TypeParam::Machine::events(kVictim);
            waits_again = true;
            other.lock();
            other.unlock();
            abandoned = true;
        });
        ASSERT_TRUE(eventually([&] { return waits.load(); }));
        std::this_thread::sleep_for(5ms);
        Threads::interrupt(kVictim);
        ASSERT_TRUE(eventually([&] { return waits_again.load(); }));
        std::this_thread::sleep_for(5ms);
        other.unlock();
    }
    EXPECT_TRUE(abandoned);
    const EventCounts after = TypeParam::Machine::events(kVictim);
    EXPECT_EQ(after[LockEvent::lock_use_node2], before[LockEvent::lock_use_node2]) << "a node was never given back";
    EXPECT_EQ(after[LockEvent::lock_corrupt], before[LockEvent::lock_corrupt]);
}

// Locks that sleep.

/// What the tests of this process have provoked themselves, and the accounting must show.
struct Provoked {
    std::uint64_t rescues = 0;
    std::uint64_t corruptions = 0;
};
Provoked provoked;

template <class L>
class SleepingLock : public TuningFixture {
  protected:
    using Tokens = sync::KickTokens<Threads>;

    /// At rest: each kick is accounted for, and no CPU woke for no reason.
    static void expect_token_identity() {
        const EventCounts e = Threads::events();
        EXPECT_EQ(e[LockEvent::kick_stats], e[LockEvent::token_ended] + e[LockEvent::token_kept] +
                                                e[LockEvent::token_merged] + Tokens::unspent());
        EXPECT_LE(e[LockEvent::wake_without_token], e[LockEvent::token_kept] + e[LockEvent::token_merged] +
                                                        e[LockEvent::token_interrupted] + provoked.rescues);
        EXPECT_EQ(e[LockEvent::lock_corrupt], provoked.corruptions);
    }
};
TYPED_TEST_SUITE(SleepingLock, sync::LocksOn<Threads>::Apply<::testing::Types>, LockName);

TYPED_TEST(SleepingLock, SleepsAndIsKickedAndEveryKickIsAccountedFor) {
    static constinit TypeParam lock;
    set_thresholds(1);
    const EventCounts before = Threads::events();
    const auto result = work_out(lock, 8, 500ms, false, [](TypeParam& l) {
        l.lock();
        return true;
    });
    const EventCounts after = Threads::events();
    EXPECT_EQ(result.intrusions, 0u);
    EXPECT_GT(after[LockEvent::hibernate_stats], before[LockEvent::hibernate_stats]);
    EXPECT_GT(after[LockEvent::pv_kick_unlock], before[LockEvent::pv_kick_unlock]);
    EXPECT_GT(after[LockEvent::token_ended], before[LockEvent::token_ended]);
    EXPECT_GT(after[LockEvent::pv_latency_wake], before[LockEvent::pv_latency_wake]);
    TestFixture::expect_token_identity();
}

TYPED_TEST(SleepingLock, WorksAtEverySpinThreshold) {
    for (const std::uint64_t threshold :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
        static constinit TypeParam lock;
        set_thresholds(threshold);
        const std::uint64_t slept = Threads::events()[LockEvent::hibernate_stats];
        const auto result = work_out(lock, 4, 200ms, false, [](TypeParam& l) {
            l.lock();
            return true;
        });
        EXPECT_EQ(result.intrusions, 0u);
        EXPECT_GT(result.visits, 0u) << threshold;
        if (threshold > 1) {
            EXPECT_EQ(Threads::events()[LockEvent::hibernate_stats], slept) << threshold;
        }
    }
    TestFixture::expect_token_identity();
}

TYPED_TEST(SleepingLock, TheThresholdActsWhileTheLockIsInUse) {
    static constinit TypeParam lock;
    set_thresholds(~std::uint64_t{0});
    const std::uint64_t slept = Threads::events()[LockEvent::hibernate_stats];
    std::atomic<bool> stop{false};
    Crew crew(4, [&](CpuId) {
        while (!stop) {
            const sync::Guard guard(lock);
            std::this_thread::yield();
        }
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(Threads::events()[LockEvent::hibernate_stats], slept);
    set_thresholds(1);
    EXPECT_TRUE(eventually([&] { return Threads::events()[LockEvent::hibernate_stats] > slept; }));
    stop = true;
}

TYPED_TEST(SleepingLock, NeverSleepsInNmi) {
    static constinit TypeParam lock;
    constexpr CpuId kCpu{40};
    set_thresholds(1);
    const std::uint64_t slept = Threads::events(kCpu)[LockEvent::hibernate_stats];
    lock.lock();
    {
        Crew crew;
        crew.add(kCpu, [] {
            this_thread_cpu.in_nmi = true;
            lock.lock();
            lock.unlock();
        });
        std::this_thread::sleep_for(50ms);
        lock.unlock();
    }
    EXPECT_EQ(Threads::events(kCpu)[LockEvent::hibernate_stats], slept);
    TestFixture::expect_token_identity();
}

// Negative control for this file: with its kick dropped a sleeper stays asleep although the lock is free, and the token
// accounting says so.
TYPED_TEST(SleepingLock, ADroppedKickIsSeen) {
    static constinit TypeParam lock;
    constexpr CpuId kCpu{41};
    set_thresholds(1);
    const std::uint64_t slept = Threads::events(kCpu)[LockEvent::hibernate_stats];
    std::atomic<bool> acquired{false};
    lock.lock();
    Crew crew;
    crew.add(kCpu, [&] {
        lock.lock();
        acquired = true;
        lock.unlock();
    });
    ASSERT_TRUE(eventually([] { return Threads::is_asleep(kCpu); }));
    sync::tuning.drop_every_nth_kick = 1;
    lock.unlock();
    std::this_thread::sleep_for(200ms);
    EXPECT_FALSE(acquired) << "woke without a kick";
    EXPECT_EQ(TestFixture::Tokens::unspent(kCpu), 1u);
    sync::tuning.drop_every_nth_kick = 0;
    Threads::rescue(kCpu);
    ++provoked.rescues;
    crew.join();
    EXPECT_TRUE(acquired);
    EXPECT_GT(Threads::events(kCpu)[LockEvent::hibernate_stats], slept);
    TestFixture::expect_token_identity();
}

using PvTicket = sync::PvTicketLock<Threads>;
using PvTicketLock = SleepingLock<PvTicket>;

// A flag that stayed would send every later unlock into its slow path, with nobody there to be kicked.
TEST_F(PvTicketLock, DropsTheSleepersFlagWithTheLastSleeper) {
    static constinit PvTicket lock;
    constexpr CpuId kCpu{42};
    sync::tuning.spin_threshold = 1;
    lock.lock();
    Crew crew;
    crew.add(kCpu, [] {
        lock.lock();
        lock.unlock();
    });
    ASSERT_TRUE(eventually([] { return Threads::is_asleep(kCpu); }));
    EXPECT_EQ(lock.word() & 1, 1u);
    lock.unlock();
    crew.join();
    EXPECT_EQ(lock.word() & 1, 0u);
    expect_token_identity();
}

using PvQueued = sync::PvQueuedLock<Threads>;
using PvQueuedLock = SleepingLock<PvQueued>;

/// A holder, a queue head that waits, a waiter behind it. Returns what the three counted.
///
/// While the head sleeps, a newcomer does not queue but hopes to steal; so the head is kept awake, by an interrupt,
/// until the other one has queued. The two may be given different numbers of spins.
class OneQueue {
  public:
    static constexpr CpuId kHead{50};
    static constexpr CpuId kBehind{51};

    explicit OneQueue(PvQueued& lock) : lock_(lock) {}

    EventCounts run(std::uint64_t head_spins, std::uint64_t behind_spins, bool behind_sleeps) {
        parked_ = release_ = behind_spins_ = false;
        set_thresholds(head_spins);
        const EventCounts before = Threads::events();
        lock_.lock();
        {
            Crew crew;
            crew.add(kHead, [this] {
                this_thread_cpu.handler = [](void* self) { static_cast<OneQueue*>(self)->park(); };
                this_thread_cpu.context = this;
                lock_.lock();
                lock_.unlock();
            });
            EXPECT_TRUE(eventually([this] {
                if (lock_.word() >> 16 != 0)
                    Threads::interrupt(kHead);
                return parked_.load();
            }));
            set_thresholds(behind_spins);
            const std::uint64_t tail = lock_.word() >> 16;
            crew.add(kBehind, [this] {
                this_thread_cpu.handler = [](void* self) { static_cast<OneQueue*>(self)->behind_spins_ = true; };
                this_thread_cpu.context = this;
                lock_.lock();
                lock_.unlock();
            });
            EXPECT_TRUE(eventually([&] { return lock_.word() >> 16 != tail; }));
            Threads::interrupt(kBehind);
            EXPECT_TRUE(eventually([this] { return behind_spins_.load(); })); // by its own number
            set_thresholds(head_spins);
            release_ = true;
            if (behind_sleeps) {
                EXPECT_TRUE(eventually([] { return Threads::is_asleep(kBehind); }));
            } else {
                std::this_thread::sleep_for(30ms);
            }
            lock_.unlock();
        }
        EventCounts difference = Threads::events();
        for (std::size_t e = 0; e < sync::kLockEvents; ++e)
            difference.values[e] -= before.values[e];
        return difference;
    }

  private:
    /// In the head's interrupt: stays until it may go on, if the head is awake to the others (pending).
    void park() {
        if ((lock_.word() & 0x100) == 0)
            return;
        parked_ = true;
        while (!release_)
            std::this_thread::yield();
    }

    PvQueued& lock_;
    std::atomic<bool> parked_{false};
    std::atomic<bool> release_{false};
    std::atomic<bool> behind_spins_{false};
};

TEST_F(PvQueuedLock, WaitsEarlyOnlyIfThePolicySaysSo) {
    static constinit PvQueued lock;
    OneQueue queue(lock);
    // So many spins that the head never sleeps by itself, and the one behind only if it gives up early.
    constexpr std::uint64_t kForEver = std::uint64_t{1} << 40;

    sync::tuning.wait_early = WaitEarly::off;
    Threads::set_preempted(OneQueue::kHead, true);
    EXPECT_EQ(queue.run(kForEver, kForEver, false)[LockEvent::pv_wait_early], 0u);

    sync::tuning.wait_early = WaitEarly::state;
    EXPECT_EQ(queue.run(kForEver, kForEver, false)[LockEvent::pv_wait_early], 0u) << "the head runs";

    sync::tuning.wait_early = WaitEarly::preempted;
    const EventCounts counts = queue.run(kForEver, kForEver, true);
    EXPECT_GT(counts[LockEvent::pv_wait_early], 0u);
    EXPECT_GT(counts[LockEvent::pv_vcpu_is_preempted], 0u);
    EXPECT_GT(counts[LockEvent::pv_wait_node], 0u);
    Threads::set_preempted(OneQueue::kHead, false);

    // The head spins a little and sleeps; the one behind, which would spin for ever, notices.
    const auto sleepy_head = [&queue](WaitEarly policy) {
        sync::tuning.wait_early = policy;
        return queue.run(1000, kForEver, policy != WaitEarly::off);
    };
    EXPECT_EQ(sleepy_head(WaitEarly::off)[LockEvent::pv_wait_early], 0u);
    EXPECT_GT(sleepy_head(WaitEarly::state)[LockEvent::pv_wait_early], 0u);
    expect_token_identity();
}

TEST_F(PvQueuedLock, KicksASleeperOnceAndAtUnlock) {
    static constinit PvQueued lock;
    const EventCounts counts = OneQueue(lock).run(1, 1, true);
    // Two sleepers: the head, kicked by the holder's unlock; the second, put into the hash while it slept and kicked by
    // the head's unlock. Never one kick for becoming head and another for the lock.
    EXPECT_EQ(counts[LockEvent::pv_kick_unlock], 2u);
    EXPECT_GE(counts[LockEvent::pv_wait_head], 1u);
    EXPECT_GE(counts[LockEvent::pv_wait_node], 1u);
    EXPECT_EQ(counts[LockEvent::lock_slowpath], 2u);
    expect_token_identity();
}

TEST_F(PvQueuedLock, StealsOnlyWhileTheHeadSleeps) {
    static constinit PvQueued lock;
    set_thresholds(1);
    const std::uint64_t stolen = Threads::events()[LockEvent::pv_lock_stealing];
    // The kick is dropped, so the head sleeps on with the lock free: a newcomer takes it past the queue.
    std::atomic<bool> acquired{false};
    lock.lock();
    Crew crew;
    crew.add(CpuId{52}, [&] {
        lock.lock();
        acquired = true;
        lock.unlock();
    });
    // Asleep, not only marked: it looks at the word once more in between.
    ASSERT_TRUE(eventually([&] { return (lock.word() & 0xff) == 3 && Threads::is_asleep(CpuId{52}); }))
        << "the head never went to sleep";
    sync::tuning.drop_every_nth_kick = 1;
    lock.unlock();
    sync::tuning.drop_every_nth_kick = 0;
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(lock.try_lock()) << "try_lock must not pass the queue";
    lock.lock();
    EXPECT_EQ(Threads::events()[LockEvent::pv_lock_stealing], stolen + 1);
    EXPECT_FALSE(acquired);
    lock.unlock();
    Threads::rescue(CpuId{52});
    ++provoked.rescues;
    crew.join();
    EXPECT_TRUE(acquired);
    expect_token_identity();
}

TEST_F(PvQueuedLock, CountsAnUnlockOfALockThatNobodyHolds) {
    static constinit PvQueued lock;
    lock.unlock();
    ++provoked.corruptions;
    EXPECT_EQ(lock.word(), 0u);
    expect_token_identity();
}

struct HashNode {
    unsigned value = 0;
};

TEST(PvHash, HoldsOneEntryPerLockAndFindsThemAll) {
    static constinit sync::PvHash<SpinningThreads, HashNode, 256> hash;
    std::vector<HashNode> nodes(257);
    std::vector<char> locks(257);
    const EventCounts before = SpinningThreads::events();
    for (std::size_t n = 0; n < 256; ++n)
        ASSERT_NE(hash.insert(&locks[n], nodes[n]), nullptr) << n;
    const std::uint64_t hops = SpinningThreads::events()[LockEvent::pv_hash_hops] - before[LockEvent::pv_hash_hops];
    EXPECT_GT(hops, 256u) << "a full table without one collision";
    EXPECT_EQ(hash.insert(&locks[256], nodes[256]), nullptr);
    // Out of order, so that searches cross holes.
    for (std::size_t n = 0; n < 256; ++n) {
        const std::size_t i = n * 101 % 256;
        EXPECT_EQ(hash.take(&locks[i]), &nodes[i]);
        EXPECT_EQ(hash.take(&locks[i]), nullptr);
    }
}

TEST(PvHash, ErasesByNode) {
    static constinit sync::PvHash<SpinningThreads, HashNode, 256> hash;
    std::vector<HashNode> nodes(8);
    std::vector<char> locks(8);
    for (std::size_t n = 0; n < 8; ++n) {
        nodes[n].value = static_cast<unsigned>(n);
        ASSERT_NE(hash.insert(&locks[n], nodes[n]), nullptr);
    }
    hash.erase_if([](const HashNode& node) { return node.value % 2 == 0; });
    for (std::size_t n = 0; n < 8; ++n)
        EXPECT_EQ(hash.take(&locks[n]) != nullptr, n % 2 != 0);
}

} // namespace
} // namespace spinkick::host
