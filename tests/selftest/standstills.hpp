// SPDX-License-Identifier: BSD-2-Clause
//
// Standstills over a pair of locks, which the watchdog's self tests call by their names without a word, and the tests
// on request with the dump. L is a traced lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"

namespace spinkick::selftest {

template <class L>
inline constinit std::array<L, 2> lock_pair{};
inline constinit workers::Barrier both_are_there{};

/// Two workers, two locks, each in the other's order.
template <class L>
void take_both(std::uint32_t worker, void*) {
    lock_pair<L>[worker].lock();
    if (both_are_there.wait(2))
        lock_pair<L>[1 - worker].lock();
}

/// Worker 0 keeps the lock for ever, in one way or another; worker 1 waits for it.
template <class L, auto Stay>
void keep_the_lock(std::uint32_t worker, void*) {
    if (worker == 0)
        lock_pair<L>[0].lock();
    if (!both_are_there.wait(2))
        return;
    if (worker == 0)
        Stay();
    else
        lock_pair<L>[0].lock();
}

/// Before a standstill, and when everybody has been thrown out of it.
template <class L>
void renew_pair() noexcept {
    both_are_there.reset();
    for (auto& lock : lock_pair<L>) {
        std::destroy_at(&lock);
        std::construct_at(&lock);
    }
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        L::reset_cpu(cpu);
        if constexpr (requires { L::Machine::reset_cpu(cpu); })
            L::Machine::reset_cpu(cpu);
    }
}

} // namespace spinkick::selftest
