// SPDX-License-Identifier: BSD-2-Clause
//
// A four-byte lock word that is read and written in pieces: the one place with mixed-size atomic access.
//
// The queued and the ticket locks live from it: an unlock is one store to a byte (or a half) that only the holder
// writes, while waiters exchange the half beside it or compare and exchange the whole. C++ has no such object; x86
// does, and both compilers and ThreadSanitizer accept it in the form below. What it rests on:
// docs/decisions/mixed-size-lock-word.md.
//
//   bit      31             16 15      8 7       0
//            +----------------+---------+---------+
//   queued   |      tail      | pending | locked  |      whole(), tail(), locked_pending(), pending(), locked()
//            +----------------+---------+---------+
//   ticket   |      tail      |       head        |      whole(), tail(), head()
//            +----------------+-------------------+
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "kernel/sync/concepts.hpp"

namespace spinkick::sync {

template <LockMachine B>
class LockWord {
    template <class T>
    using Atomic = typename B::template Atomic<T>;

  public:
    constexpr LockWord() noexcept : whole_{0} {}

    // Views share storage with the whole word, and an access through any of them is an access to these bytes only.
    // clang-format off
    [[nodiscard]] Atomic<std::uint32_t>& whole()          noexcept { return whole_; }
    [[nodiscard]] Atomic<std::uint16_t>& locked_pending() noexcept { return half_[0]; }
    [[nodiscard]] Atomic<std::uint16_t>& head()           noexcept { return half_[0]; }
    [[nodiscard]] Atomic<std::uint16_t>& tail()           noexcept { return half_[1]; }
    [[nodiscard]] Atomic<std::uint8_t>&  locked()         noexcept { return byte_[0]; }
    [[nodiscard]] Atomic<std::uint8_t>&  pending()        noexcept { return byte_[1]; }
    // clang-format on
    [[nodiscard]] const Atomic<std::uint32_t>& whole() const noexcept { return whole_; }

  private:
    union {
        Atomic<std::uint32_t> whole_;
        Atomic<std::uint16_t> half_[2];
        Atomic<std::uint8_t> byte_[4];
    };

    static_assert(std::endian::native == std::endian::little);
    static_assert(sizeof(Atomic<std::uint32_t>) == 4 && sizeof(Atomic<std::uint16_t>) == 2 &&
                  sizeof(Atomic<std::uint8_t>) == 1);
};

/// The fields of a queued lock's word, as masks of the whole.
namespace queued_word {
inline constexpr std::uint32_t kLockedMask = 0xff;
inline constexpr std::uint32_t kPendingMask = 0xff00;
inline constexpr std::uint32_t kLockedPendingMask = kLockedMask | kPendingMask;
inline constexpr std::uint32_t kTailMask = 0xffff'0000;
inline constexpr unsigned kTailShift = 16;

inline constexpr std::uint32_t kLocked = 1;
inline constexpr std::uint32_t kPending = 1u << 8;
} // namespace queued_word

/// Adds to a half word that nobody but the caller writes, and releases. Not a locked instruction. Two back-end atomics
/// (load, store) say the same, but g++ makes three instructions of them; a back end may offer the one that the machine
/// has.
template <LockMachine B>
[[gnu::always_inline]] inline void add_by_owner(typename B::template Atomic<std::uint16_t>& word,
                                                std::uint16_t amount) noexcept {
    if constexpr (requires { B::add_by_owner(word, amount); }) {
        B::add_by_owner(word, amount);
    } else {
        // relaxed: only the caller writes here. release: what was done under the lock comes before the next holder.
        word.store(static_cast<std::uint16_t>(word.load(std::memory_order_relaxed) + amount),
                   std::memory_order_release);
    }
}

} // namespace spinkick::sync
