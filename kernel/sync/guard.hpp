// SPDX-License-Identifier: BSD-2-Clause
//
// Scoped ownership of a lock, with the interrupt mask left alone or closed first.
#pragma once

#include "kernel/sync/concepts.hpp"

namespace spinkick::sync {

/// Holds the lock from here to the end of the scope. Only for locks that no interrupt handler takes.
template <Lock L>
class [[nodiscard]] Guard {
  public:
    explicit Guard(L& lock) noexcept : lock_(lock) { lock_.lock(); }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    L& lock_;
};

/// The same with interrupts masked from before the wait until after the release, for locks that a handler takes as
/// well: a handler that waited for the lock of the code it interrupts would wait for ever.
template <Lock L>
class [[nodiscard]] InterruptsOffGuard {
    using Machine = typename L::Machine;

  public:
    explicit InterruptsOffGuard(L& lock) noexcept : lock_(lock), state_(Machine::disable_interrupts()) { lock_.lock(); }
    ~InterruptsOffGuard() {
        lock_.unlock();
        Machine::restore_interrupts(state_);
    }
    InterruptsOffGuard(const InterruptsOffGuard&) = delete;
    InterruptsOffGuard& operator=(const InterruptsOffGuard&) = delete;

  private:
    L& lock_;
    typename Machine::InterruptState state_;
};

} // namespace spinkick::sync
