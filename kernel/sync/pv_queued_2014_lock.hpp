// SPDX-License-Identifier: BSD-2-Clause
//
// Paravirtual queued spinlock, generation of 2014: the qspinlock series, versions 6 and 7, for KVM (Waiman Long). Read
// queued_lock.hpp for the word and the queue, pv_queue_2014.hpp for who sleeps and how it is found, and
// pv_queued_lock.hpp for what became of it.
//
// The word is (tail, pending, locked); n is the caller's node, x any tail, * any value:
//
//   0,0,0 --cmpxchg------> 0,0,1    lock: fast path, and try_lock
//   x,*,1 --cmpxchg byte-> x,*,0    unlock
//   x,*,3 --store byte 0-> x,*,0    unlock slow path: after the walk to the queue head; then the kick
//
//   0,1,0                           seen on entry: the pending CPU is about to take it; look again, kPendingLoops times
//   0,0,1 --or pending---> 0,1,1    nobody waits: become the pending CPU ...
//   0,1,1 --loads--------> 0,1,0    ... wait for the holder ...
//   0,1,0 --store half---> 0,0,1    ... and take it
//   *,1,1 --store byte 0-> *,0,1    ... or give up, after a sixteenth of qspin_threshold (2^10), and queue: the
//                                   pending CPU spins on the word, where nobody could find it asleep
//   x,0,* --or pending---> x,1,*    somebody has queued meanwhile: undo (only if it was this CPU that set it) and queue
//
//   x,*,* --xchg tail----> n,*,*    queue; x != 0: link behind x, wait as a node
//   x,*,* --loads--------> x,0,0    queue head: wait until neither holder nor pending CPU is left
//   x,*,1 --cmpxchg byte-> x,*,3    queue head has spun out, and sleeps
//   x,*,1 --store byte---> x,*,3    new holder, on behalf of the next head, which sleeps already
//   n,0,0 --cmpxchg------> 0,0,1    queue head, nobody behind: take it and empty the queue
//   x,0,0 --store byte 1-> x,0,1    queue head, x behind: take it, then make the next one head
//
// Not FIFO: a pending CPU that gives up queues behind those who came after it.
//
// Differences to the original: MayHalt (pv_queue_2014.hpp) is closed unless asked for as published; a newcomer names
// itself until it knows its predecessor; and the bound of the pending CPU is derived from the one threshold.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/lock_view.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"
#include "kernel/sync/pv_queue_2014.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

template <ParavirtBackend B, MayHalt kMayHalt = MayHalt::closed>
class PvQueued2014Lock {
    using Queue = PvQueue2014<B, PvQueued2014Lock, kMayHalt>;
    using Node = typename Queue::Node;

  public:
    using Machine = B;
    static constexpr const char* kName = "pv-queued-2014";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = true;
    static constexpr bool kSleeps = true;
    static constexpr WordLayout kWord = WordLayout::queued;
    static constexpr bool kHasNodes = true;

    constexpr PvQueued2014Lock() noexcept = default;
    PvQueued2014Lock(const PvQueued2014Lock&) = delete;
    PvQueued2014Lock& operator=(const PvQueued2014Lock&) = delete;

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
    static constexpr std::uint32_t kPending = queued_word::kPending;

    /// As in queued_lock.hpp.
    static constexpr unsigned kPendingLoops = 1u << 9;

    [[gnu::noinline]] void lock_slow(std::uint32_t seen) noexcept {
        for (unsigned looks = kPendingLoops; seen == kPending && looks != 0; --looks) {
            spin_once<B>();
            seen = word_.whole().load(std::memory_order_relaxed); // decides the way only; every way acquires by itself
        }
        if ((seen & ~queued_word::kLockedMask) != 0 || !lock_as_pending())
            lock_queued();
    }

    /// 0,0,1 -> 0,1,1 -> 0,1,0 -> 0,0,1. False if somebody else waits, or if it takes too long: the caller queues.
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
            std::uint64_t left = std::max<std::uint64_t>(1, Queue::spins() / 16);
            while (word_.locked().load(std::memory_order_acquire) != 0) {
                if (--left == 0) {
                    word_.pending().store(0, std::memory_order_relaxed); // as above
                    return false;
                }
                spin_once<B>();
            }
        }
        // relaxed: the lock is free and reserved by the pending bit; taking it publishes nothing.
        word_.locked_pending().store(kLocked, std::memory_order_relaxed);
        B::count(LockEvent::lock_pending, 1);
        return true;
    }

    void lock_queued() noexcept {
        const CpuId cpu = B::this_cpu();
        if (Node* const node = Queue::nodes().claim(cpu)) {
            Queue::prepare(*node);
            // The node's cache line has just been brought in: time enough for the lock to have become free.
            if (!try_lock())
                wait_in_queue(*node);
        } else {
            // A fifth level. It must not sleep either: there is no node by which anybody could find it.
            while (!try_lock())
                spin_once<B>();
        }
        Queue::nodes().release(cpu);
    }

    void wait_in_queue(Node& node) noexcept {
        if (Node* const before = Queue::append(word_, node)) {
            before->next.store(&node, std::memory_order_release);
            Queue::wait_node(node, []() noexcept { return false; });
        }
        const std::uint16_t mine = Queue::nodes().tail_of(node);
        std::uint32_t seen = 0;
        // acquire: what follows is the section, if neither holder nor pending CPU is left. Nobody else takes the lock
        // then, while a tail is set.
        Queue::wait_head(word_, node, [this, &seen]() noexcept {
            seen = word_.whole().load(std::memory_order_acquire);
            return (seen & queued_word::kLockedPendingMask) == 0;
        });
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
        Queue::grant(word_, *next);
    }

    LockWord<B> word_;
};

} // namespace spinkick::sync
