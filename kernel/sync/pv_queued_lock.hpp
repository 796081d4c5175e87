// SPDX-License-Identifier: BSD-2-Clause
//
// Paravirtual queued spinlock, as Linux has had it since 2015 (kernel/locking/qspinlock_paravirt.h; Waiman Long, Peter
// Zijlstra). Read queued_lock.hpp first. There, every waiter spins; here, on a machine whose vCPUs do not all run at
// once, a waiter that has spun for long enough puts its vCPU to sleep, and is kicked when its turn has come.
//
// Three ideas carry it:
//  * Kick once, at unlock. A sleeping waiter that becomes queue head is not woken for that (it could only wait on): its
//    predecessor marks the lock word on its behalf, and the unlock that gives it the lock wakes it.
//  * The mark is the locked byte itself: 3 instead of 1. An unlock that finds 3 knows that somebody sleeps, finds out
//  who in
//    a hash (pv_hash.hpp), releases, kicks. An unlock that finds 1 is one locked instruction.
//  * Hybrid: a newcomer may steal the lock, once, before it queues. A lock that is free while its queue head still
//  wakes up
//    would otherwise be wasted for the length of a wake-up. The pending bit has no waiter of its own here: it says that
//    the queue head is awake, which forbids stealing, so that nobody waits for ever.
//
// The word is (tail, pending, locked); n is the caller's node, x any tail, * any value:
//
//   0,0,0 --cmpxchg------> 0,0,1     lock: fast path, and try_lock
//   x,0,0 --cmpxchg byte-> x,0,1     steal, before queuing; looks again while x != 0 and the head is not awake
//   x,*,1 --cmpxchg byte-> x,*,0     unlock
//   x,*,3 --xchg byte----> x,*,0     unlock slow path: entry taken out of the hash before, kick after
//
//   x,*,* --xchg tail----> n,*,*     queue; x != 0: link behind x, wait as a node
//   x,0,* --store byte---> x,1,*     queue head is awake: no stealing
//   x,1,0 --cmpxchg half-> x,0,1     queue head takes the lock
//   x,1,* --store byte---> x,0,*     queue head has spun out: stealing allowed
//   x,0,1 --xchg byte----> x,0,3     queue head is in the hash and sleeps; if it was 0: the lock is the head's (x,0,3
//   -> x,0,1) x,*,1 --store byte---> x,*,3     new holder, on behalf of the next head, which sleeps already n,0,1
//   --cmpxchg------> 0,0,1     new holder, nobody behind: empty the queue
//
// State of a node, beside the MCS flag `locked`:
//
//   running --spun out, or the predecessor does not run either--> halted --woken--> running
//                                                                   |
//                                          made head in its sleep: cmpxchg by the new holder
//                                                                   v
//   running --head has spun out: into the hash, byte 1 -> 3-----> hashed --unlock: out of the hash, byte 0, kick-->
//   running
//
// Barrier pairs. All RMWs are locked instructions, hence full barriers on this machine, a failed cmpxchg included; the
// first pair relies on that for the cmpxchg that finds `running` and writes nothing.
//   wait_node:  S state=halted; MB; L locked          kick_node: S next.locked=1; MB; RMW next.state halted -> hashed
//               Either the waiter sees that it is head and does not sleep, or the holder sees that it sleeps.
//   wait_head:  S hash entry; MB; RMW byte=3          unlock:    RMW byte sees 3; A; L hash entry
//               Who sees the mark finds the entry.
//   wait_head:  arm; L byte==3; sleep                 unlock:    RMW byte=0; kick
//               The back end's promise: no sleep past a kick that was sent after the last look.
//   and those of queued_lock.hpp, with the cmpxchg in the place of unlock's store.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/flight_events.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"
#include "kernel/sync/pv_hash.hpp"
#include "kernel/sync/timed_kicks.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

template <ParavirtBackend B>
class PvQueuedLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "pv-queued";
    static constexpr bool kIsFifo = false; // a newcomer may steal
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;
    static constexpr WordLayout kWord = WordLayout::queued;
    static constexpr bool kHasNodes = true;

    constexpr PvQueuedLock() noexcept = default;
    PvQueuedLock(const PvQueuedLock&) = delete;
    PvQueuedLock& operator=(const PvQueuedLock&) = delete;

    void lock() noexcept {
        std::uint32_t seen = 0;
        if (word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_acquire, std::memory_order_relaxed))
            [[likely]]
            return;
        lock_slow();
    }

    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed); // only a look; the cmpxchg acquires
        return seen == 0 && word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_acquire,
                                                                  std::memory_order_relaxed);
    }

    void unlock() noexcept {
        std::uint8_t seen = kLocked;
        // acquire on failure: the mark was set after the hash entry was made.
        if (word_.locked().compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_acquire))
            [[likely]]
            return;
        unlock_slow(seen);
    }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }

    static void reset_cpu(CpuId cpu) noexcept {
        hash_.erase_if([cpu](const Node& node) { return nodes_.cpu_of(node) == cpu; });
        nodes_.reset_cpu(cpu);
    }
    /// For a dump.
    [[nodiscard]] static WaiterView waiter(CpuId cpu) noexcept {
        const Node* node = nullptr;
        auto view = nodes_.view(cpu, node);
        if (node != nullptr) {
            const auto state = node->state.load(std::memory_order_relaxed);
            view.state = state == kHalted ? "halted" : state == kHashed ? "hashed" : "running";
        }
        return view;
    }

    /// Locks of this type remember nothing about any CPU: no waiter, no leak. Exact when nobody waits.
    [[nodiscard]] static bool at_rest() noexcept { return nodes_.at_rest() && hash_.empty(); }

  private:
    enum State : std::uint8_t { kRunning, kHalted, kHashed };

    struct Node {
        Atomic<Node*> next{nullptr};
        Atomic<std::uint32_t> locked{0}; ///< 1: the predecessor has made this node the queue head
        std::uint16_t depth = 0;         ///< NodePool's
        Atomic<std::uint8_t> state{kRunning};
    };
    static_assert(sizeof(Node) == 16);

    using Pool = NodePool<B, Node>;
    using Hash = PvHash<B, Node, std::bit_ceil(std::max<std::size_t>(256, std::size_t{4} * B::kMaxCpus))>;

    static constexpr std::uint8_t kLocked = queued_word::kLocked;
    static constexpr std::uint8_t kSlow = 3; ///< held, and the queue head sleeps
    static constexpr std::uint16_t kPendingFree = queued_word::kPending;

    /// How often (a power of two, less one) a waiter looks whether its predecessor still runs.
    static constexpr std::uint64_t kPredecessorCheckMask = 0xff;

    /// A threshold of 0 still means one look, or else nobody would ever take the lock.
    [[nodiscard]] static std::uint64_t spins() noexcept {
        return std::max<std::uint64_t>(1, tuning.spin_threshold.load(std::memory_order_relaxed));
    }

    [[gnu::noinline]] void lock_slow() noexcept {
        const CpuId cpu = B::this_cpu();
        if (Node* const node = nodes_.claim(cpu)) {
            // relaxed: the node becomes reachable by the xchg and by prev.next below, both of which release it.
            node->next.store(nullptr, std::memory_order_relaxed);
            node->locked.store(0, std::memory_order_relaxed);
            node->state.store(kRunning, std::memory_order_relaxed);
            if (tuning.stealing.load(std::memory_order_relaxed) == Stealing::off || !steal())
                wait_in_queue(*node);
        } else {
            // A fifth level. It must not sleep either: there is no node by which anybody could find it.
            while (!try_lock())
                spin_once<B>();
        }
        nodes_.release(cpu);
    }

    /// x,0,0 -> x,0,1. Gives up as soon as there is nothing to steal: no queue, or a queue head that is awake.
    bool steal() noexcept {
        for (;;) {
            const std::uint32_t seen = word_.whole().load(std::memory_order_relaxed); // the cmpxchg acquires
            std::uint8_t free = 0;
            if ((seen & queued_word::kLockedPendingMask) == 0 &&
                word_.locked().compare_exchange_strong(free, kLocked, std::memory_order_acquire,
                                                       std::memory_order_relaxed)) {
                B::count(LockEvent::pv_lock_stealing, 1);
                return true;
            }
            if ((seen & queued_word::kTailMask) == 0 || (seen & queued_word::kPendingMask) != 0)
                return false;
            spin_once<B>();
        }
    }

    void wait_in_queue(Node& node) noexcept {
        const std::uint16_t mine = nodes_.tail_of(node);
        // release: the node is ready before it can be found. acquire: the predecessor's node is ready too.
        const std::uint16_t tail_before = word_.tail().exchange(mine, std::memory_order_acq_rel);
        if (tail_before != 0) {
            Node& before = nodes_.node_of(tail_before);
            before.next.store(&node, std::memory_order_release);
            record_event<B>(FlightEvent::queued, raw(Pool::cpu_of(tail_before)));
            wait_node(node, before);
        }
        wait_head(node);

        // The lock is held from here on. n,0,1 -> 0,0,1 if nobody is behind; relaxed: nothing is handed over by this.
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed);
        if (seen >> queued_word::kTailShift == mine &&
            word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_relaxed, std::memory_order_relaxed))
            return;

        Node* next = node.next.load(std::memory_order_acquire);
        while (next == nullptr) {
            spin_once<B>();
            next = node.next.load(std::memory_order_acquire);
        }
        next->locked.store(1, std::memory_order_release);
        kick_node(*next);
    }

    /// Waits to become queue head.
    void wait_node(Node& node, const Node& before) noexcept {
        for (;;) {
            LockEvent why = LockEvent::pv_wait_node;
            const WaitEarly policy = tuning.wait_early.load(std::memory_order_relaxed);
            for (std::uint64_t left = spins(); left != 0; --left) {
                if (node.locked.load(std::memory_order_acquire) != 0)
                    return;
                if ((left & kPredecessorCheckMask) == 0) {
                    why = reason_to_wait(before, policy);
                    if (why != LockEvent::pv_wait_node)
                        break;
                }
                spin_once<B>();
            }
            // seq_cst: the first barrier pair above. An exchange, because a store alone may pass the load below.
            node.state.exchange(kHalted, std::memory_order_seq_cst);
            if (node.locked.load(std::memory_order_seq_cst) == 0) {
                B::count(LockEvent::pv_wait_node, 1);
                if (why != LockEvent::pv_wait_node)
                    B::count(LockEvent::pv_wait_early, 1);
                // acquire: whoever changed the state has made this node head before.
                TimedKicks<B>::wait_unless(
                    why, [&node]() noexcept { return node.state.load(std::memory_order_acquire) != kHalted; });
            }
            // If the state is `hashed` by now, wait_head() must know. seq_cst: decides against kick_node()'s cmpxchg.
            std::uint8_t halted = kHalted;
            node.state.compare_exchange_strong(halted, kRunning, std::memory_order_seq_cst);
            if (node.locked.load(std::memory_order_acquire) == 0)
                B::count(LockEvent::pv_spurious_wakeup, 1);
        }
    }

    /// Why a waiter need not spin: pv_wait_early, its predecessor sleeps; pv_vcpu_is_preempted, the hypervisor says
    /// that it does not run; pv_wait_node, for no reason. A hint: the predecessor may have moved on, and its node may
    /// wait in another queue.
    [[nodiscard]] static LockEvent reason_to_wait(const Node& before, WaitEarly policy) noexcept {
        if (policy == WaitEarly::off)
            return LockEvent::pv_wait_node;
        if (before.state.load(std::memory_order_relaxed) != kRunning)
            return LockEvent::pv_wait_early;
        if (policy != WaitEarly::preempted || !B::is_preempted(nodes_.cpu_of(before)))
            return LockEvent::pv_wait_node;
        B::count(LockEvent::pv_vcpu_is_preempted, 1);
        return LockEvent::pv_vcpu_is_preempted;
    }

    /// Called by the new holder for the new queue head: if that sleeps, puts it into the hash and marks the word, so
    /// that the holder's own unlock wakes it, with the lock free for it.
    void kick_node(Node& next) noexcept {
        std::uint8_t halted = kHalted;
        if (!next.state.compare_exchange_strong(halted, kHashed, std::memory_order_seq_cst))
            return;
        if (hash_.insert(this, next) == nullptr) {
            // No entry, so no unlock would find it: wake it now, it can wait on by itself.
            next.state.store(kRunning, std::memory_order_seq_cst);
            B::count(LockEvent::lock_corrupt, 1);
            TimedKicks<B>::kick(nodes_.cpu_of(next));
            return;
        }
        word_.locked().store(kSlow, std::memory_order_relaxed); // read by this CPU's own unlock
    }

    /// Waits for the lock at the head of the queue, and takes it.
    void wait_head(Node& node) noexcept {
        bool hashed = node.state.load(std::memory_order_relaxed) == kHashed; // by kick_node()
        B::count(LockEvent::lock_slowpath, 1);

        for (bool again = false;; again = true) {
            node.state.store(kRunning, std::memory_order_relaxed); // only a hint to the waiter behind
            word_.pending().store(1,
                                  std::memory_order_relaxed); // stealers look at it before their cmpxchg; also a hint
            for (std::uint64_t left = spins(); left != 0; --left) {
                if (take_pending())
                    return;
                spin_once<B>();
            }
            word_.pending().store(0, std::memory_order_relaxed);

            if (!hashed) {
                // Once per acquisition: if the lock is stolen after the entry was used, the head spins on. (So does
                // Linux; pv_wait_again counts it.)
                typename Hash::Entry* const entry = hash_.insert(this, node);
                if (entry == nullptr) {
                    B::count(LockEvent::lock_corrupt, 1);
                    continue;
                }
                hashed = true;
                // seq_cst: the entry is visible before the mark, the second pair above; and the lock may have become
                // free, in which case this exchange has taken it and acquires.
                if (word_.locked().exchange(kSlow, std::memory_order_seq_cst) == 0) {
                    word_.locked().store(kLocked, std::memory_order_relaxed); // nobody else writes a held byte
                    Hash::erase(*entry);
                    return;
                }
            }
            node.state.store(kHashed, std::memory_order_relaxed);
            B::count(LockEvent::pv_wait_head, 1);
            if (again)
                B::count(LockEvent::pv_wait_again, 1);
            TimedKicks<B>::wait_unless(LockEvent::pv_wait_head, [this]() noexcept {
                return word_.locked().load(std::memory_order_relaxed) != kSlow;
            });
        }
    }

    /// x,1,0 -> x,0,1
    bool take_pending() noexcept {
        if (word_.locked().load(std::memory_order_relaxed) != 0)
            return false;
        std::uint16_t free = kPendingFree;
        return word_.locked_pending().compare_exchange_strong(free, kLocked, std::memory_order_acquire,
                                                              std::memory_order_relaxed);
    }

    [[gnu::noinline]] void unlock_slow(std::uint8_t seen) noexcept {
        if (seen != kSlow) {
            // Not held, or overwritten. Leaving the word as it is keeps the evidence.
            B::count(LockEvent::lock_corrupt, 1);
            return;
        }
        Node* const node = hash_.take(this);
        // From the release on the lock may be taken, released and its memory be used for something else; the node
        // belongs to a CPU and stays. seq_cst: kick() wants what done() reads to be out before.
        word_.locked().exchange(0, std::memory_order_seq_cst);
        if (node == nullptr) {
            B::count(LockEvent::lock_corrupt, 1);
            return;
        }
        TimedKicks<B>::kick(nodes_.cpu_of(*node));
    }

    inline static constinit Pool nodes_{};
    inline static constinit Hash hash_{};

    LockWord<B> word_;
};

} // namespace spinkick::sync
