// SPDX-License-Identifier: BSD-2-Clause
//
// Taking a queued lock past its queue, and leaving the queue from anywhere: what the unfair locks have in common. After
// the unfair lock of the qspinlock series of 2014 (Waiman Long), which Linux did not take in.
//
// Any byte `locked` that is 0 may be taken, by a newcomer or by a waiter. A waiter tries only now and then, the more
// rarely the further behind it is: every `steal_interval` (2^3) looks next to the queue head, twice as many for each
// place behind it, up to 2^10. So the lock goes to somebody near the head as a rule, and the word is not hammered by
// all.
//
// Who has stolen from within the queue must take its node out of it. It holds the lock by then, and so does everybody
// else who takes a node out: a queue head leaves, and makes the next one head, with the lock held. So leaving is
// serialised by the lock itself, and `prev`, which nobody else looks at, needs no order of its own. What goes on beside
// it is that newcomers append: one exchanges the tail, which is the moment at which it is in the queue, and then links
// itself into its predecessor.
//
//   p <-> n         n is the tail:      cmpxchg tail n -> p;  cmpxchg p.next n -> none
//                                       The first fails if somebody has queued behind n: see below. The second fails if
//                                       somebody has queued behind p since the first, and then p.next is right.
//   p <-> n <-> x   somebody is behind: wait for n.next = x;  x.prev = p;  p.next = x
//
// A waiter that has stolen finds, with the lock in its hands, whether it had become queue head meanwhile: its
// predecessor made it so before it released the lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

/// Node has atomic pointers `next` and `prev`, and an atomic std::uint32_t `interval_behind`.
template <LockMachine B, class Node>
class UnfairQueue {
    using Word = LockWord<B>;
    using Pool = NodePool<B, Node>;

  public:
    /// x,0 -> x,1
    static bool steal(Word& word) noexcept {
        if (word.locked().load(std::memory_order_relaxed) != 0) // only a look; the cmpxchg acquires
            return false;
        std::uint8_t free = 0;
        return word.locked().compare_exchange_strong(free, queued_word::kLocked, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
    }

    /// try_lock() of the unfair locks.
    static bool try_lock(Word& word) noexcept {
        std::uint32_t seen = word.whole().load(std::memory_order_relaxed); // only a look; the cmpxchg acquires
        if (seen == 0)
            return word.whole().compare_exchange_strong(seen, queued_word::kLocked, std::memory_order_acquire,
                                                        std::memory_order_relaxed);
        return tuning.stealing.load(std::memory_order_relaxed) != Stealing::off && steal(word);
    }

    /// For the first in an empty queue; set before the node can be found.
    static void place_first(Node& node) noexcept {
        node.interval_behind.store(first_interval(), std::memory_order_relaxed);
    }
    /// Then for each that queues behind `before`, which is not linked yet and therefore cannot leave. relaxed: numbers
    /// of looks; one that comes too early for the second finds the first.
    static std::uint32_t place_behind(Node& node, const Node& before) noexcept {
        const std::uint32_t interval = before.interval_behind.load(std::memory_order_relaxed);
        node.interval_behind.store(interval < kMostLooks ? interval * 2 : interval, std::memory_order_relaxed);
        return interval;
    }

    /// When a waiter tries. Starts with a whole interval.
    class Chances {
      public:
        explicit Chances(std::uint32_t interval) noexcept : interval_(interval), left_(interval) {}

        /// Called at each look; true if this is one at which to try.
        bool next() noexcept {
            if (--left_ != 0)
                return false;
            left_ = interval_;
            return tuning.stealing.load(std::memory_order_relaxed) == Stealing::on;
        }

      private:
        std::uint32_t interval_;
        std::uint32_t left_;
    };

    /// Takes a waiter that is not queue head out of the queue. The caller has just stolen the lock.
    static void leave(Pool& nodes, Word& word, Node& node) noexcept {
        B::count(LockEvent::queue_steal, 1);
        // relaxed: last written by this CPU or under the lock.
        Node& before = *node.prev.load(std::memory_order_relaxed);
        std::uint16_t mine = nodes.tail_of(node);
        // release: who queues behind `before` now has to find it ready, as it does behind everybody.
        if (word.tail().compare_exchange_strong(mine, nodes.tail_of(before), std::memory_order_release,
                                                std::memory_order_relaxed)) {
            Node* linked = &node;
            // relaxed: `before` reads it when it holds the lock. If it fails, somebody has linked himself there.
            before.next.compare_exchange_strong(linked, nullptr, std::memory_order_relaxed, std::memory_order_relaxed);
            return;
        }
        B::count(LockEvent::queue_steal_middle, 1);
        Node& next = behind(node);
        // relaxed, both: read by whoever holds the lock after this.
        next.prev.store(&before, std::memory_order_relaxed);
        before.next.store(&next, std::memory_order_relaxed);
    }

    /// The one behind, perhaps still between the exchange of the tail and its link.
    static Node& behind(const Node& node) noexcept {
        Node* next = node.next.load(std::memory_order_acquire);
        while (next == nullptr) {
            spin_once<B>();
            next = node.next.load(std::memory_order_acquire);
        }
        return *next;
    }

  private:
    static constexpr std::uint32_t kMostLooks = 1u << 10;

    [[nodiscard]] static std::uint32_t first_interval() noexcept {
        return std::max<std::uint32_t>(1, tuning.steal_interval.load(std::memory_order_relaxed));
    }
};

} // namespace spinkick::sync
