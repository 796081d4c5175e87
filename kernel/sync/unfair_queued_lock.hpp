// SPDX-License-Identifier: BSD-2-Clause
//
// Unfair queued spinlock: the queue of queued_lock.hpp, which anybody may pass. After the unfair lock of the qspinlock
// series of 2014 (Waiman Long), made for guests without paravirtual locks: where vCPUs are preempted, a lock that may
// only go to the next in line stands still with it. Linux never took it in; it uses the test-and-set lock there.
//
// Read queued_lock.hpp for the word and the queue, unfair_queue.hpp for how the queue is passed and left. There is no
// bound on starvation, except that a queue head looks all the time and those behind it seldom.
//
// The word is (tail, locked); n is the caller's node, p its predecessor, x any tail, * any value:
//
//   0,0 --cmpxchg------> 0,1    lock: fast path, and try_lock
//   x,0 --cmpxchg byte-> x,1    steal: a newcomer once, and try_lock; a waiter at times; the queue head at each look
//   x,1 --store byte---> x,0    unlock
//
//   x,* --xchg tail----> n,*    queue; x != 0: link behind x and wait
//   n,1 --cmpxchg------> 0,1    queue head, now the holder, nobody behind: empty the queue. Otherwise it makes the next
//                               one head
//   n,1 --cmpxchg tail-> p,1    a waiter that has stolen, nobody behind: leave the queue from its end
//
// Barrier pairs (R = releasing store or RMW, A = acquiring load or RMW):
//   unlock: R locked=0        ->  A cmpxchg of who takes it     section before, section after; also the queue, which is
//                                                               changed at its front and middle by holders only
//   queue:  R xchg tail       ->  A xchg tail of the next one   node ready before it can be found
//   queue:  R prev.next=n     ->  A load next                   n.prev, n.granted=0 before what is written to them
//   head:   R next.granted=1  ->  A load granted, in the queue  hands over what the head has seen
//
// Differences to the original: no pending bit. It serves the second of two CPUs, which waits on the word and keeps
// nodes out of the game; here others take the byte under its eyes, so it would have to be one more queue head. And the
// attempts to steal can be switched off (Tuning::stealing).
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/flight_events.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"
#include "kernel/sync/tuning.hpp"
#include "kernel/sync/unfair_queue.hpp"

namespace spinkick::sync {

template <LockMachine B>
class UnfairQueuedLock {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    using Machine = B;
    static constexpr const char* kName = "unfair-queued";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = false;
    static constexpr WordLayout kWord = WordLayout::queued;
    static constexpr bool kHasNodes = true;

    constexpr UnfairQueuedLock() noexcept = default;
    UnfairQueuedLock(const UnfairQueuedLock&) = delete;
    UnfairQueuedLock& operator=(const UnfairQueuedLock&) = delete;

    void lock() noexcept {
        std::uint32_t seen = 0;
        if (word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_acquire, std::memory_order_relaxed))
            [[likely]]
            return;
        lock_slow();
    }

    [[nodiscard]] bool try_lock() noexcept { return Queue::try_lock(word_); }

    void unlock() noexcept { word_.locked().store(0, std::memory_order_release); }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId cpu) noexcept { nodes_.reset_cpu(cpu); }
    /// For a dump.
    [[nodiscard]] static WaiterView waiter(CpuId cpu) noexcept {
        const Node* node = nullptr;
        auto view = nodes_.view(cpu, node);
        if (node != nullptr)
            view.state =
                node->granted.load(std::memory_order_relaxed) != 0 || view.ahead == 0 ? "queue head" : "queued";
        return view;
    }

    /// Locks of this type remember nothing about any CPU: no waiter, no leak. Exact when nobody waits.
    [[nodiscard]] static bool at_rest() noexcept { return nodes_.at_rest(); }

  private:
    struct alignas(32) Node {
        Atomic<Node*> next{nullptr};
        Atomic<Node*> prev{nullptr};              ///< of a waiter that is not queue head
        Atomic<std::uint32_t> granted{0};         ///< 1: the predecessor has made this node the queue head
        Atomic<std::uint32_t> interval_behind{0}; ///< UnfairQueue's
        std::uint16_t depth = 0;                  ///< NodePool's
    };
    static_assert(sizeof(Node) == 32);

    using Queue = UnfairQueue<B, Node>;

    static constexpr std::uint32_t kLocked = queued_word::kLocked;

    [[gnu::noinline]] void lock_slow() noexcept {
        if (tuning.stealing.load(std::memory_order_relaxed) != Stealing::off && Queue::steal(word_)) {
            B::count(LockEvent::pv_lock_stealing, 1);
            return;
        }
        B::count(LockEvent::lock_slowpath, 1);
        const CpuId cpu = B::this_cpu();
        if (Node* const node = nodes_.claim(cpu)) {
            // relaxed: the node becomes reachable by the xchg and by prev.next below, both of which release it.
            node->next.store(nullptr, std::memory_order_relaxed);
            node->granted.store(0, std::memory_order_relaxed);
            Queue::place_first(*node);
            wait_in_queue(*node);
        } else {
            // A fifth level. It makes progress whatever the four below wait for.
            while (!try_lock())
                B::relax();
        }
        nodes_.release(cpu);
    }

    void wait_in_queue(Node& node) noexcept {
        const std::uint16_t mine = nodes_.tail_of(node);
        // release: the node is ready before it can be found. acquire: the predecessor's node is ready too.
        const std::uint16_t tail_before = word_.tail().exchange(mine, std::memory_order_acq_rel);
        bool stolen = false;
        if (tail_before != 0) {
            Node& before = nodes_.node_of(tail_before);
            const std::uint32_t interval = Queue::place_behind(node, before);
            node.prev.store(&before, std::memory_order_relaxed); // published by the link
            before.next.store(&node, std::memory_order_release);
            record_event<B>(FlightEvent::queued, raw(nodes_.cpu_of(before)));
            stolen = wait_node(node, interval);
        }
        if (!stolen) {
            while (!Queue::steal(word_))
                B::relax();
        } else if (node.granted.load(std::memory_order_relaxed) == 0) {
            Queue::leave(nodes_, word_, node);
            return;
        }

        // Queue head, and the lock is held. n,1 -> 0,1 if nobody is behind; relaxed: nothing is handed over by this.
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed);
        if (seen >> queued_word::kTailShift == mine &&
            word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_relaxed, std::memory_order_relaxed))
            return;
        Queue::behind(node).granted.store(1, std::memory_order_release);
    }

    /// Waits to become queue head. True: has taken the lock from within the queue instead.
    bool wait_node(const Node& node, std::uint32_t interval) noexcept {
        typename Queue::Chances chances(interval);
        while (node.granted.load(std::memory_order_acquire) == 0) {
            if (chances.next() && Queue::steal(word_))
                return true;
            B::relax();
        }
        return false;
    }

    inline static constinit NodePool<B, Node> nodes_{};

    LockWord<B> word_;
};

} // namespace spinkick::sync
