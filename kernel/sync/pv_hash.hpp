// SPDX-License-Identifier: BSD-2-Clause
//
// From a lock to the queue node that must be kicked when the lock is released.
//
// A lock word has no room for a pointer and its holder does not know the queue, so a waiter that goes to sleep at the
// head of the queue leaves (lock, node) here before it marks the word; the holder that finds the mark looks the node
// up. Open addressing over entries of 16 bytes, searched from the start of a cache line, four entries a line.
//
// A lock has at most one entry. It stands for a node, and there are as many entries as nodes, so the table cannot be
// full and an entry that was inserted is found. Deleting leaves a hole; a search does not stop at holes.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernel/sync/concepts.hpp"

namespace spinkick::sync {

template <LockMachine B, class Node, std::size_t kEntries>
class PvHash {
    static_assert(kEntries >= 256 && (kEntries & (kEntries - 1)) == 0);

  public:
    struct Entry {
        // The key is only compared: when it is looked up, the lock itself may be gone.
        typename B::template Atomic<const void*> lock{nullptr};
        typename B::template Atomic<Node*> node{nullptr};
    };

    /// The caller publishes the entry by a later RMW of the lock word. Null only if the table is full.
    [[nodiscard]] Entry* insert(const void* lock, Node& node) noexcept {
        const std::size_t start = start_of(lock);
        for (std::size_t hop = 0; hop < kEntries; ++hop) {
            Entry& entry = entries_[(start + hop) % kEntries];
            const void* empty = nullptr;
            // relaxed first look: skips taken entries without locking their line. The exchange needs no order either:
            // what the entry's last user read from it is ordered by that user's release of its lock.
            if (entry.lock.load(std::memory_order_relaxed) != nullptr ||
                !entry.lock.compare_exchange_strong(empty, lock, std::memory_order_relaxed, std::memory_order_relaxed))
                continue;
            entry.node.store(&node, std::memory_order_relaxed);
            B::count(LockEvent::pv_hash_hops, hop + 1);
            return &entry;
        }
        return nullptr;
    }

    static void erase(Entry& entry) noexcept { entry.lock.store(nullptr, std::memory_order_release); }

    /// Finds, removes and returns the node of `lock`; the caller has seen the mark in the lock word, with acquire. Null
    /// if there is none: the word was marked by nobody that queues.
    [[nodiscard]] Node* take(const void* lock) noexcept {
        const std::size_t start = start_of(lock);
        for (std::size_t hop = 0; hop < kEntries; ++hop) {
            Entry& entry = entries_[(start + hop) % kEntries];
            if (entry.lock.load(std::memory_order_relaxed) != lock)
                continue;
            Node* const node = entry.node.load(std::memory_order_relaxed);
            erase(entry); // release: the node is read before another lock may put its own there
            return node;
        }
        return nullptr;
    }

    /// Removes every entry for which `gone(node)` holds.
    template <class Gone>
    void erase_if(Gone gone) noexcept {
        for (Entry& entry : entries_) {
            const Node* const node = entry.node.load(std::memory_order_relaxed);
            if (entry.lock.load(std::memory_order_relaxed) != nullptr && node != nullptr && gone(*node))
                erase(entry);
        }
    }

    /// No entry is in use. Exact when nobody waits.
    [[nodiscard]] bool empty() const noexcept {
        return std::all_of(entries_.begin(), entries_.end(),
                           [](const Entry& entry) { return entry.lock.load(std::memory_order_relaxed) == nullptr; });
    }

  private:
    static constexpr std::size_t kPerLine = 64 / sizeof(Entry);
    static_assert(sizeof(Entry) == 16);

    [[nodiscard]] static std::size_t start_of(const void* lock) noexcept {
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4): the upper bits of the product depend on all bits of the address.
        const auto product = reinterpret_cast<std::uintptr_t>(lock) * 0x9e37'79b9'7f4a'7c15u;
        return (product >> 32) % kEntries / kPerLine * kPerLine;
    }

    alignas(64) std::array<Entry, kEntries> entries_{};
};

} // namespace spinkick::sync
