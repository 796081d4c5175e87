// SPDX-License-Identifier: BSD-2-Clause
//
// Unfair paravirtual queued spinlock: unfair_queued_lock.hpp, whose waiters sleep as those of pv_queued_2014_lock.hpp
// do. After the qspinlock series of 2014 (Waiman Long), which measured it as the fifth of its variants.
//
// The word is (tail, locked); n is the caller's node, p its predecessor, x any tail, * any value:
//
//   0,0 --cmpxchg------> 0,1    lock: fast path, and try_lock
//   x,0 --cmpxchg byte-> x,1    steal: a newcomer once, and try_lock; a waiter at times; the queue head at each look
//   x,1 --cmpxchg byte-> x,0    unlock
//   x,3 --store byte 0-> x,0    unlock slow path: after the walk to the queue head; then the kick
//
//   x,* --xchg tail----> n,*    queue; x != 0: link behind x and wait
//   x,1 --cmpxchg byte-> x,3    queue head has spun out, and sleeps
//   x,1 --store byte---> x,3    new holder, on behalf of the next head, which sleeps already
//   n,1 --cmpxchg------> 0,1    queue head, now the holder, nobody behind: empty the queue. Otherwise it makes the next
//                               one head
//   n,1 --cmpxchg tail-> p,1    a waiter that has stolen, nobody behind: leave the queue from its end
//
// The mark belongs to the hold during which it was set: whoever releases it kicks the head, and if somebody is quicker
// than the head, that one sets it anew before it sleeps again. Nodes leave the middle of the queue, and unlocks walk
// it, with the lock held; so a walk never meets a node that is on its way out.
//
// Differences to the original, beside those of the two locks that it is made of: there, waiters did not steal from
// within the queue where they could sleep. Here they do, unless Tuning::stealing is `entry`.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"
#include "kernel/sync/pv_queue_2014.hpp"
#include "kernel/sync/tuning.hpp"
#include "kernel/sync/unfair_queue.hpp"

namespace spinkick::sync {

template <ParavirtBackend B>
class UnfairPvQueuedLock {
    using Queue = PvQueue2014<B, UnfairPvQueuedLock, MayHalt::closed>;
    using Node = typename Queue::Node;
    using Unfair = UnfairQueue<B, Node>;

  public:
    using Machine = B;
    static constexpr const char* kName = "unfair-pv-queued";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;
    static constexpr WordLayout kWord = WordLayout::queued;
    static constexpr bool kHasNodes = true;

    constexpr UnfairPvQueuedLock() noexcept = default;
    UnfairPvQueuedLock(const UnfairPvQueuedLock&) = delete;
    UnfairPvQueuedLock& operator=(const UnfairPvQueuedLock&) = delete;

    void lock() noexcept {
        std::uint32_t seen = 0;
        if (word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_acquire, std::memory_order_relaxed))
            [[likely]]
            return;
        lock_slow();
    }

    [[nodiscard]] bool try_lock() noexcept { return Unfair::try_lock(word_); }

    void unlock() noexcept {
        std::uint8_t seen = kLocked;
        // acquire on failure: who has set the mark was in the queue before.
        if (word_.locked().compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_acquire))
            [[likely]]
            return;
        Queue::unlock_slow(word_, seen);
    }

    [[nodiscard]] std::uint64_t word() const noexcept { return word_.whole().load(std::memory_order_relaxed); }
    static void reset_cpu(CpuId cpu) noexcept { Queue::reset_cpu(cpu); }
    [[nodiscard]] static WaiterView waiter(CpuId cpu) noexcept { return Queue::waiter(cpu); }

    /// Locks of this type remember nothing about any CPU: no waiter, no leak. Exact when nobody waits.
    [[nodiscard]] static bool at_rest() noexcept { return Queue::nodes().at_rest(); }

  private:
    static constexpr std::uint32_t kLocked = queued_word::kLocked;

    [[gnu::noinline]] void lock_slow() noexcept {
        if (tuning.stealing.load(std::memory_order_relaxed) != Stealing::off && Unfair::steal(word_)) {
            B::count(LockEvent::pv_lock_stealing, 1);
            return;
        }
        const CpuId cpu = B::this_cpu();
        if (Node* const node = Queue::nodes().claim(cpu)) {
            Queue::prepare(*node);
            Unfair::place_first(*node);
            wait_in_queue(*node);
        } else {
            // A fifth level. It must not sleep either: there is no node by which anybody could find it.
            while (!try_lock())
                spin_once<B>();
        }
        Queue::nodes().release(cpu);
    }

    void wait_in_queue(Node& node) noexcept {
        const std::uint16_t mine = Queue::nodes().tail_of(node);
        bool stolen = false;
        if (Node* const before = Queue::append(word_, node)) {
            typename Unfair::Chances chances(Unfair::place_behind(node, *before));
            before->next.store(&node, std::memory_order_release);
            stolen =
                Queue::wait_node(node, [this, &chances]() noexcept { return chances.next() && Unfair::steal(word_); });
        }
        if (!stolen) {
            Queue::wait_head(word_, node, [this]() noexcept { return Unfair::steal(word_); });
        } else if (node.granted.load(std::memory_order_relaxed) == 0) {
            Unfair::leave(Queue::nodes(), word_, node);
            return;
        }

        // Queue head, and the lock is held. n,1 -> 0,1 if nobody is behind; relaxed: nothing is handed over by this.
        std::uint32_t seen = word_.whole().load(std::memory_order_relaxed);
        if (seen >> queued_word::kTailShift == mine &&
            word_.whole().compare_exchange_strong(seen, kLocked, std::memory_order_relaxed, std::memory_order_relaxed))
            return;
        Queue::grant(word_, Unfair::behind(node));
    }

    LockWord<B> word_;
};

} // namespace spinkick::sync
