// SPDX-License-Identifier: BSD-2-Clause
//
// Sleeping in a queue and being found there, as the paravirtual qspinlock of 2014 did it (Waiman Long, versions 6 and 7
// of the series; never merged: what Linux took in a year later is pv_queued_lock.hpp). The locks pv-queued-2014 and
// unfair-pv-queued are built on it.
//
// A sleeping queue head marks the lock word: its byte `locked` becomes 3, by the head itself, or by the holder on its
// behalf if it was asleep already when it was made head. An unlock that finds 3 must wake the head, and there is no
// hash to look it up in: the word names the tail, every node names its predecessor, so the unlock walks from the tail
// to the head. It does so before it releases the lock, since heads change under the lock only. That costs time in
// proportion to the queue, with the lock held; queue_walk and queue_walk_nodes say how much.
//
//   prev:   the node itself --queued, predecessor known--> predecessor --made head--> none
//           A newcomer is in the queue before it can name its predecessor; until then it names itself and the walk
//           waits for it.
//
//   state:  active --spun out--> halted --woken--> active
//                                  |
//                          unlock: xchg kicked; kick only if it was halted
//                                  v
//           active, halted --> kicked --seen--> active, and it spins anew
//
// A head spins twice `qspin_threshold` looks, others once. Half-way, the head takes it that the holder does not run,
// and kicks it (Tuning::kick_holder), if it knows whom: the holder is the one who made it head, so long as it has not
// been woken, which means that the lock has changed hands. Of a holder that came by the fast path, by the pending bit
// or by stealing it knows nothing. Whether such kicks can help at all is what the counters are for: a holder that runs
// needs none, one that is preempted gains nothing from it, and one that sleeps does so in another lock, from which the
// kick does not free it.
//
// Barrier pairs (all RMWs are locked instructions, hence full barriers on this machine, a failed cmpxchg included):
//   wait_node:  RMW state=halted; L granted           grant:     RMW granted; L state
//               Either the waiter sees that it is head and does not sleep, or the holder sees that it sleeps, and marks
//               the word.
//   halt_head:  RMW state=halted; RMW locked 1 -> 3   unlock:    RMW locked sees 3; A; ...; RMW state=kicked
//               Who sees the mark finds that the head sleeps; whose release comes first, the head finds 0.
//   halt_head:  arm; L state==halted; sleep           unlock:    RMW state=kicked; kick
//               The back end's promise: no sleep past a kick that was sent after the last look.
//   append:     R prev                                find_head: A prev
//   unlock:     R locked=0; RMW state                 The kick comes after the release, and perhaps much later: the
//               node may serve in another queue by then. There it is one wake-up too many.
//
// The hole in the published form, MayHalt::published. To spare the grant its full barrier, a waiter raises the flag
// `may_halt` 16 looks before it sleeps, with a full barrier; a grant that finds it down looks no further. But the store
// of `granted` and the load of `may_halt` are to different words, and the load may come first:
//
//   holder                                   waiter
//   store granted=1, into the store buffer
//   load may_halt: 0, so do not mark
//                                            may_halt=1; barrier; 16 looks at granted: 0; halted; granted: 0; sleep
//   the store becomes visible
//   unlock: locked is 1, nobody to kick      sleeps for good
//
// It rests on 16 looks taking longer than a store takes to become visible, which a preempted vCPU does not break (the
// buffer is drained on the way out of the guest) and nothing guarantees. The checker finds it. The closed form,
// MayHalt::closed, pays for the barrier in each grant and has no use for the flag; it is the one in the list of locks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/directed_yield.hpp"
#include "kernel/sync/flight_events.hpp"
#include "kernel/sync/lock_word.hpp"
#include "kernel/sync/mcs_node.hpp"
#include "kernel/sync/timed_kicks.hpp"
#include "kernel/sync/tuning.hpp"

namespace spinkick::sync {

/// How a holder learns that the new queue head sleeps; see above.
enum class MayHalt : std::uint8_t { closed, published };

/// The queues of all locks of the type Owner.
template <ParavirtBackend B, class Owner, MayHalt kMayHalt>
class PvQueue2014 {
    template <class T>
    using Atomic = typename B::template Atomic<T>;
    using Word = LockWord<B>;

    enum State : std::uint8_t { kActive, kHalted, kKicked };

  public:
    struct alignas(32) Node {
        Atomic<Node*> next{nullptr};
        Atomic<Node*> prev{nullptr};
        Atomic<std::uint32_t> granted{0};         ///< CPU + 1 of the holder that has made this node the queue head
        Atomic<std::uint32_t> interval_behind{0}; ///< UnfairQueue's
        std::uint16_t depth = 0;                  ///< NodePool's
        Atomic<std::uint8_t> state{kActive};
        Atomic<std::uint8_t> may_halt{0}; ///< MayHalt::published only
    };
    static_assert(sizeof(Node) == 32);
    using Pool = NodePool<B, Node>;

    static constexpr std::uint8_t kLocked = queued_word::kLocked;
    static constexpr std::uint8_t kSlow = 3; ///< locked, and the queue head sleeps

    [[nodiscard]] static Pool& nodes() noexcept { return nodes_; }

    static void reset_cpu(CpuId cpu) noexcept {
        nodes_.reset_cpu(cpu);
        for (Node& node : nodes_.nodes_of(cpu)) // it does not sleep here any more: see kick_holder()
            node.state.store(kActive, std::memory_order_relaxed);
    }

    /// For a dump.
    [[nodiscard]] static WaiterView waiter(CpuId cpu) noexcept {
        const Node* node = nullptr;
        auto view = nodes_.view(cpu, node);
        if (node != nullptr) {
            const auto state = node->state.load(std::memory_order_relaxed);
            view.state = state == kHalted ? "halted" : state == kKicked ? "kicked" : "active";
        }
        return view;
    }

    /// Looks of a waiter; 0 still means one, or else nobody would ever take the lock. Read at the start of each spin.
    [[nodiscard]] static std::uint64_t spins() noexcept {
        return std::max<std::uint64_t>(1, tuning.qspin_threshold.load(std::memory_order_relaxed));
    }

    /// Readies a node that nobody can find yet.
    static void prepare(Node& node) noexcept {
        // relaxed: the node becomes reachable by the xchg and by prev.next below, both of which release it. The state
        // is left as it is: `active`, or `kicked` by somebody who was late, which costs a spin.
        node.next.store(nullptr, std::memory_order_relaxed);
        node.prev.store(&node, std::memory_order_relaxed);
        node.granted.store(0, std::memory_order_relaxed);
        if constexpr (kMayHalt == MayHalt::published) {
            node.may_halt.store(0, std::memory_order_relaxed);
        }
    }

    /// x,*,* -> n,*,*; the predecessor, or nullptr: the node is queue head. The caller links a node that is not.
    static Node* append(Word& word, Node& node) noexcept {
        // release: the node is ready before it can be found. acquire: the predecessor's node is ready too.
        const std::uint16_t before = word.tail().exchange(nodes_.tail_of(node), std::memory_order_acq_rel);
        Node* const prev = before != 0 ? &nodes_.node_of(before) : nullptr;
        node.prev.store(prev, std::memory_order_release);
        if (prev != nullptr)
            record_event<B>(FlightEvent::queued, raw(Pool::cpu_of(before)));
        return prev;
    }

    /// Waits to become queue head. steal() is called after each look; if it says that it has taken the lock, so does
    /// this.
    template <class Steal>
    static bool wait_node(Node& node, Steal steal) noexcept {
        for (;;) {
            const std::uint64_t looks = spins();
            for (std::uint64_t left = looks; left != 0; --left) {
                if (node.granted.load(std::memory_order_acquire) != 0)
                    return false;
                if (steal())
                    return true;
                if constexpr (kMayHalt == MayHalt::published) {
                    if (left == std::min(looks, kMayHaltLooks))
                        node.may_halt.exchange(1, std::memory_order_seq_cst);
                }
                spin_once<B>();
            }
            std::uint8_t active = kActive;
            // seq_cst: the first barrier pair. Fails if an unlock of another lock, which this node has served before,
            // was late with its kick.
            if (node.state.compare_exchange_strong(active, kHalted, std::memory_order_seq_cst)) {
                if (node.granted.load(std::memory_order_seq_cst) == 0) {
                    B::count(LockEvent::pv_wait_node, 1);
                    TimedKicks<B>::wait_unless(LockEvent::pv_wait_node, [&node]() noexcept {
                        return node.state.load(std::memory_order_relaxed) != kHalted;
                    });
                    if (node.granted.load(std::memory_order_relaxed) == 0)
                        B::count(LockEvent::pv_spurious_wakeup, 1);
                }
            }
            // relaxed: who misses it sends a kick too many.
            node.state.store(kActive, std::memory_order_relaxed);
            if constexpr (kMayHalt == MayHalt::published) {
                node.may_halt.store(0, std::memory_order_relaxed);
            }
        }
    }

    /// Waits at the head of the queue until take() says that the lock is taken.
    template <class Take>
    static void wait_head(Word& word, Node& node, Take take) noexcept {
        B::count(LockEvent::lock_slowpath, 1);
        // relaxed: the caller has seen that it is set, or is head of a queue that was empty.
        std::uint32_t holder = node.granted.load(std::memory_order_relaxed);
        for (bool again = false;; again = true) {
            if (spin(take))
                return;
            if (tuning.kick_holder.load(std::memory_order_relaxed))
                kick_holder(holder);
            if (spin(take))
                return;
            std::uint8_t active = kActive;
            // seq_cst: the second barrier pair. Fails if the lock was released and this head was to be told.
            if (node.state.compare_exchange_strong(active, kHalted, std::memory_order_seq_cst)) {
                std::uint8_t held = kLocked;
                // If it fails with 3, the word is marked already. With 0 the lock is free, or kept for its pending CPU.
                if (word.locked().compare_exchange_strong(held, kSlow, std::memory_order_seq_cst) || held == kSlow) {
                    B::count(LockEvent::pv_wait_head, 1);
                    if (again)
                        B::count(LockEvent::pv_wait_again, 1);
                    TimedKicks<B>::wait_unless(LockEvent::pv_wait_head, [&node]() noexcept {
                        return node.state.load(std::memory_order_relaxed) != kHalted;
                    });
                }
            }
            node.state.store(kActive, std::memory_order_relaxed); // as in wait_node()
            holder = 0;
        }
    }

    /// By the holder, which was queue head: makes the next one head. If that sleeps, marks the word on its behalf.
    static void grant(Word& word, Node& next) noexcept {
        next.prev.store(nullptr, std::memory_order_relaxed); // read by whoever holds the lock
        const std::uint32_t me = raw(B::this_cpu()) + 1;
        if constexpr (kMayHalt == MayHalt::published) {
            next.granted.store(me, std::memory_order_release);
            if (next.may_halt.load(std::memory_order_relaxed) == 0)
                return; // the hole
        }
        // seq_cst, both: the first barrier pair; it also releases what the head has seen.
        next.granted.exchange(me, std::memory_order_seq_cst);
        if (next.state.load(std::memory_order_seq_cst) == kHalted)
            word.locked().store(kSlow, std::memory_order_relaxed); // read by this CPU's own unlock
    }

    /// x,*,1 -> x,*,0 has failed: the byte was `seen`.
    [[gnu::noinline]] static void unlock_slow(Word& word, std::uint8_t seen) noexcept {
        Node* const head = seen == kSlow ? find_head(word) : nullptr;
        if (head == nullptr) {
            // Not held, or overwritten. Leaving the word as it is keeps the evidence.
            B::count(LockEvent::lock_corrupt, 1);
            return;
        }
        // From here on the lock may be taken, released and its memory be used for something else; nodes belong to CPUs
        // and stay.
        word.locked().store(0, std::memory_order_release);
        // seq_cst: kick() wants what done() reads to be out before.
        if (head->state.exchange(kKicked, std::memory_order_seq_cst) == kHalted)
            TimedKicks<B>::kick(nodes_.cpu_of(*head));
    }

  private:
    static constexpr std::uint64_t kMayHaltLooks = 0x10;

    template <class Take>
    static bool spin(Take take) noexcept {
        for (std::uint64_t left = spins(); left != 0; --left) {
            if (take())
                return true;
            spin_once<B>();
        }
        return false;
    }

    /// From the tail, by way of prev. The caller holds the lock, and has seen a mark with acquire.
    static Node* find_head(Word& word) noexcept {
        const std::uint16_t tail = word.tail().load(std::memory_order_acquire); // the node is ready
        if (tail == 0)
            return nullptr;
        std::uint64_t nodes = 1;
        Node* node = &nodes_.node_of(tail);
        for (;;) {
            Node* const prev = node->prev.load(std::memory_order_acquire);
            if (prev == nullptr)
                break;
            if (prev == node) { // queued, and about to say behind whom
                spin_once<B>();
                continue;
            }
            node = prev;
            ++nodes;
        }
        B::count(LockEvent::queue_walk, 1);
        B::count(LockEvent::queue_walk_nodes, nodes);
        return node;
    }

    /// `holder` is its CPU + 1, or 0.
    static void kick_holder(std::uint32_t holder) noexcept {
        if (holder == 0) {
            B::count(LockEvent::kick_holder_unknown, 1);
            return;
        }
        const CpuId cpu{holder - 1};
        const auto& theirs = nodes_.nodes_of(cpu);
        B::count(LockEvent::kick_holder_tried, 1);
        // relaxed: a statistic.
        if (std::any_of(theirs.begin(), theirs.end(),
                        [](const Node& node) { return node.state.load(std::memory_order_relaxed) == kHalted; }))
            B::count(LockEvent::kick_holder_halted, 1);
        else if (B::is_preempted(cpu))
            B::count(LockEvent::kick_holder_preempted, 1);
        else
            B::count(LockEvent::kick_holder_running, 1);
        B::kick(cpu);
    }

    inline static constinit Pool nodes_{};
};

} // namespace spinkick::sync
