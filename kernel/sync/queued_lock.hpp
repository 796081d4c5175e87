// SPDX-License-Identifier: BSD-2-Clause
//
// Queued spinlock: MCS in four bytes, with one waiter allowed to spin on the word itself. The design is Linux's
// qspinlock (Waiman Long and Peter Zijlstra, 2013-2015, after Mellor-Crummey and Scott 1991).
//
// Why not plain MCS: its lock is a pointer, and unlock() needs the node. Here the word keeps a tail that names a
// per-CPU node (mcs_node.hpp) and a byte that says "held", so an unlock is one byte store and a node serves only while
// its CPU waits. Why a pending bit: with two CPUs in contention, the second waits on the word, which it has in its
// cache anyway, and no node is ever touched; the queue begins with the third.
//
// The word is (tail, pending, locked); n is the caller's node, x any tail, * any value:
//
//   0,0,0 --cmpxchg------> 0,0,1    lock: fast path, and try_lock
//   x,*,1 --store byte 0-> x,*,0    unlock
//
//   0,1,0                           seen on entry: the pending CPU is about to take it; look again, kPendingLoops times
//   0,0,1 --or pending---> 0,1,1    nobody waits: become the pending CPU ...
//   0,1,1 --loads--------> 0,1,0    ... wait for the holder ...
//   0,1,0 --store half---> 0,0,1    ... and take it: pending cleared and locked set by one store
//   x,0,* --or pending---> x,1,*    somebody queued meanwhile: undo (only if it was this CPU that set it) ...
//   x,1,* --store byte 0-> x,0,*    ... and queue behind them
//
//   x,*,* --xchg tail----> n,*,*    queue; x != 0: link behind x and spin on the own node until it hands over
//   x,*,* --loads--------> x,0,0    queue head: wait until neither holder nor pending CPU is left
//   n,0,0 --cmpxchg------> 0,0,1    queue head, nobody behind: take it and empty the queue
//   x,0,0 --store byte 1-> x,0,1    queue head, x behind: take it, then make the next one head
//
// Barrier pairs (R = releasing store or RMW, A = acquiring load or RMW):
//   unlock: R locked=0      ->  A of lock's cmpxchg, pending's load, head's load   section before, section after
//   queue:  R xchg tail     ->  A xchg tail of the next one                        node ready before it can be found
//   queue:  R prev.next=n   ->  A load next, by the head                           n.locked=0 before n.locked=1
//   head:   R next.locked=1 ->  A load locked, in the queue                        hands over what the head has seen
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/flight_events.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"

namespace spinkick::sync {

template <LockMachine B>
class QueuedLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "queued";
    static constexpr bool kIsFifo = true;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;
    static constexpr WordLayout kWord = WordLayout::queued;
    static constexpr bool kHasNodes = true;

    constexpr QueuedLock() noexcept = default;
    QueuedLock(const QueuedLock&) = delete;
    QueuedLock& operator=(const QueuedLock&) = delete;

    void lock() noexcept {
        std::uint32_t seen = 0;
        if (word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_acquire, std::memory_order_relaxed))
            [[likely]]
            return;
        lock_slow(seen);
    }

    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed); // only a look; the cmpxchg acquires
        return seen == 0 && word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_acquire,
                                                                  std::memory_order_relaxed);
    }

    void unlock() noexcept { word_.locked().store(0, std::memory_order_release); }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId cpu) noexcept { nodes_.reset_cpu(cpu); }
    /// For a dump.
    [[nodiscard]] static WaiterView waiter(CpuId cpu) noexcept {
        const Node* node = nullptr;
        auto view = nodes_.view(cpu, node);
        if (node != nullptr)
            view.state = node->locked.load(std::memory_order_relaxed) != 0 || view.ahead == 0 ? "queue head" : "queued";
        return view;
    }

    /// Locks of this type remember nothing about any CPU: no waiter, no leak. Exact when nobody waits.
    [[nodiscard]] static bool at_rest() noexcept { return nodes_.at_rest(); }

  private:
    struct Node {
        Atomic<Node*> next{nullptr};
        Atomic<std::uint32_t> locked{0}; ///< 1: the predecessor has made this node the queue head
        std::uint16_t depth = 0;         ///< NodePool's
    };
    static_assert(sizeof(Node) == 16);
    using Pool = NodePool<B, Node>;

    static constexpr std::uint32_t kLocked = queued_word::kLocked;
    static constexpr std::uint32_t kPending = queued_word::kPending;

    /// Looks at a hand-over (0,1,0) in progress before this CPU stops hoping to become the next pending CPU. Without a
    /// bound, a stream of others could renew the hand-over for ever.
    static constexpr unsigned kPendingLoops = 1u << 9;

    [[gnu::noinline]] void lock_slow(std::uint32_t seen) noexcept {
        for (unsigned looks = kPendingLoops; seen == kPending && looks != 0; --looks) {
            spin_once<B>();
            seen = word_.whole().load(std::memory_order_relaxed); // decides the way only; every way acquires by itself
        }
        if ((seen & ~queued_word::kLockedMask) != 0 || !lock_as_pending())
            lock_queued();
    }

    /// 0,0,1 -> 0,1,1 -> 0,1,0 -> 0,0,1. False if somebody else waits: the caller queues.
    bool lock_as_pending() noexcept {
        // acquire: 0,0,0 -> 0,1,0 is possible too, and then this RMW is what follows the last holder's section.
        const std::uint32_t old = word_.whole().fetch_or(kPending, std::memory_order_acquire);
        if ((old & ~queued_word::kLockedMask) != 0) {
            // relaxed: a bit that was set and unset by this CPU carries nothing to anybody.
            if ((old & kPending) == 0)
                word_.pending().store(0, std::memory_order_relaxed);
            return false;
        }
        if ((old & queued_word::kLockedMask) != 0) {
            while (word_.locked().load(std::memory_order_acquire) != 0)
                spin_once<B>();
        }
        // relaxed: the lock is free and reserved by the pending bit; taking it publishes nothing.
        word_.locked_pending().store(kLocked, std::memory_order_relaxed);
        B::count(LockEvent::lock_pending, 1);
        return true;
    }

    void lock_queued() noexcept {
        B::count(LockEvent::lock_slowpath, 1);
        const CpuId cpu = B::this_cpu();
        if (Node* const node = nodes_.claim(cpu)) {
            // relaxed: the node becomes reachable by the xchg and by prev.next below, both of which release it.
            node->next.store(nullptr, std::memory_order_relaxed);
            node->locked.store(0, std::memory_order_relaxed);
            // The node's cache line has just been brought in: time enough for the lock to have become free.
            if (!try_lock())
                wait_in_queue(*node);
        } else {
            // A fifth level. Unfair, but it makes progress whatever the four below wait for.
            while (!try_lock())
                spin_once<B>();
        }
        nodes_.release(cpu);
    }

    void wait_in_queue(Node& node) noexcept {
        const std::uint16_t mine = nodes_.tail_of(node);
        // release: the node is ready before it can be found. acquire: the predecessor's node is ready too.
        const std::uint16_t before = word_.tail().exchange(mine, std::memory_order_acq_rel);
        if (before != 0) {
            nodes_.node_of(before).next.store(&node, std::memory_order_release);
            record_event<B>(FlightEvent::queued, raw(Pool::cpu_of(before)));
            while (node.locked.load(std::memory_order_acquire) == 0)
                spin_once<B>();
        }

        // Queue head. From here only the tail can change under it: nobody else takes the lock while a tail is set.
        std::uint32_t seen = word_.whole().load(std::memory_order_acquire);
        while ((seen & queued_word::kLockedPendingMask) != 0) {
            spin_once<B>();
            seen = word_.whole().load(std::memory_order_acquire);
        }
        // relaxed: the load above has acquired, and nothing is handed to anybody yet.
        if (seen >> queued_word::kTailShift == mine &&
            word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_relaxed, std::memory_order_relaxed))
            return;
        word_.locked().store(kLocked, std::memory_order_relaxed); // as above

        // Somebody is behind, perhaps between the xchg and the link.
        Node* next = node.next.load(std::memory_order_acquire);
        while (next == nullptr) {
            spin_once<B>();
            next = node.next.load(std::memory_order_acquire);
        }
        next->locked.store(1, std::memory_order_release);
    }

    inline static constinit Pool nodes_{};

    LockWord<B> word_;
};

} // namespace spinkick::sync
