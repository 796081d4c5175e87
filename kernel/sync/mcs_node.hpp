// SPDX-License-Identifier: BSD-2-Clause
//
// Queue nodes of the queued locks: where a waiter spins, and how sixteen bits of the lock word name it.
//
// The queue is that of Mellor-Crummey and Scott ("Algorithms for scalable synchronization on shared-memory
// multiprocessors", ACM TOCS 9(1), 1991): each waiter spins on a word of its own and is told by its predecessor. MCS
// hands a pointer to the node from lock() to unlock(); here, as in Linux's qspinlock, a node is needed only while its
// CPU waits, so every CPU owns a few, and a small number names one:
//
//   tail:  bits 1:0 index of the node in its CPU, bits 15:2 CPU + 1; 0 is the empty queue
//
// Four nodes per CPU, because a wait may be interrupted by a wait: task, interrupt, higher interrupt, NMI. A fifth
// level (say #DB inside the NMI) gets none and must take the lock without queuing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/sync/concepts.hpp"
#include "kernel/sync/lock_view.hpp"

namespace spinkick::sync {

/// Node is a struct with a plain std::uint16_t `depth`, of which only node 0's is used: how many nodes of this CPU are
/// taken.
template <LockMachine B, class Node>
class NodePool {
  public:
    static constexpr std::uint16_t kNodesPerCpu = 4;
    static_assert(B::kMaxCpus < 1u << 14, "a tail has 14 bits for CPU + 1");

    /// Takes the next node of `cpu`, the caller's. Null if this is a fifth level. Ends with release() in either case.
    [[nodiscard]] Node* claim(CpuId cpu) noexcept {
        auto& nodes = cpus_[index(cpu)].nodes;
        const std::uint16_t level = nodes[0].depth++;
        // An interrupt from here on must see the node as taken before this level writes to it. Nobody else looks at
        // depth, so the order binds the compiler only.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        switch (level) {
        case 0:
            break;
        case 1:
            B::count(LockEvent::lock_use_node2, 1);
            break;
        case 2:
            B::count(LockEvent::lock_use_node3, 1);
            break;
        case 3:
            B::count(LockEvent::lock_use_node4, 1);
            break;
        default:
            B::count(LockEvent::lock_no_node, 1);
            return nullptr;
        }
        return &nodes[level];
    }

    void release(CpuId cpu) noexcept {
        std::atomic_signal_fence(std::memory_order_seq_cst); // all use of the node is over; see claim()
        --cpus_[index(cpu)].nodes[0].depth;
    }

    [[nodiscard]] std::uint16_t tail_of(const Node& node) const noexcept {
        const std::size_t i = index_of(node);
        return static_cast<std::uint16_t>((i / kNodesPerCpu + 1) << 2 | i % kNodesPerCpu);
    }

    [[nodiscard]] Node& node_of(std::uint16_t tail) noexcept {
        return cpus_[(tail >> 2) - 1u].nodes[tail % kNodesPerCpu];
    }

    /// All nodes of a CPU, taken or not.
    [[nodiscard]] std::array<Node, kNodesPerCpu>& nodes_of(CpuId cpu) noexcept { return cpus_[index(cpu)].nodes; }

    /// Of the node that a tail names; the tail is not 0.
    [[nodiscard]] static constexpr CpuId cpu_of(std::uint16_t tail) noexcept {
        return CpuId{static_cast<std::uint32_t>(tail >> 2) - 1};
    }

    [[nodiscard]] CpuId cpu_of(const Node& node) const noexcept {
        return CpuId{static_cast<std::uint32_t>(index_of(node) / kNodesPerCpu)};
    }

    /// Forgets every level of a CPU that was thrown out of a wait. No lock that it waited for may be used any more.
    void reset_cpu(CpuId cpu) noexcept { cpus_[index(cpu)].nodes[0].depth = 0; }

    /// No level of any CPU is taken. Exact when nobody waits.
    [[nodiscard]] bool at_rest() const noexcept {
        return std::all_of(cpus_.begin(), cpus_.end(), [](const PerCpu& cpu) { return cpu.nodes[0].depth == 0; });
    }

    /// Where the innermost wait of a CPU stands, for a dump; nullptr in `node` if it has no node. The owner may go on
    /// meanwhile: what is told is then out of date, and never out of bounds.
    [[nodiscard]] WaiterView view(CpuId cpu, const Node*& node) const noexcept {
        WaiterView view;
        node = innermost(cpu);
        const Node* at = node;
        // Only waiters have somebody behind them, so a chain is not longer than all nodes together.
        for (std::size_t hops = 0; at != nullptr && hops < cpus_.size() * kNodesPerCpu; ++hops) {
            view.queued = true;
            const Node* const before = predecessor(*at);
            if (before == nullptr)
                break;
            if (view.ahead++ == 0)
                view.behind = cpu_of(*before);
            at = before;
        }
        return view;
    }

  private:
    [[nodiscard]] std::uint16_t depth_of(CpuId cpu) const noexcept {
        // Another CPU's plain counter: half a word is read whole, and a wrong one costs a line of a dump.
        const auto depth = *const_cast<const volatile std::uint16_t*>(&cpus_[index(cpu)].nodes[0].depth);
        return std::min(depth, kNodesPerCpu);
    }
    [[nodiscard]] const Node* innermost(CpuId cpu) const noexcept {
        const auto depth = depth_of(cpu);
        return depth == 0 ? nullptr : &cpus_[index(cpu)].nodes[depth - 1u];
    }
    /// The waiting node that has this one behind it.
    [[nodiscard]] const Node* predecessor(const Node& node) const noexcept {
        for (std::uint32_t cpu = 0; cpu < cpus_.size(); ++cpu)
            for (std::uint16_t level = 0; level < depth_of(CpuId{cpu}); ++level)
                if (cpus_[cpu].nodes[level].next.load(std::memory_order_relaxed) == &node)
                    return &cpus_[cpu].nodes[level];
        return nullptr;
    }

    // One CPU's nodes never share a cache line with another's: that is the point of an MCS queue.
    struct alignas(64) PerCpu {
        std::array<Node, kNodesPerCpu> nodes{};
    };
    static_assert(sizeof(PerCpu) % (kNodesPerCpu * sizeof(Node)) == 0 && sizeof(PerCpu) == sizeof(PerCpu::nodes),
                  "index_of() counts nodes through the whole array");

    [[nodiscard]] std::size_t index_of(const Node& node) const noexcept {
        return static_cast<std::size_t>(&node - cpus_[0].nodes.data());
    }

    std::array<PerCpu, B::kMaxCpus> cpus_{};
};

} // namespace spinkick::sync
