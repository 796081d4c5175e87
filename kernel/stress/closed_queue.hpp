// SPDX-License-Identifier: BSD-2-Clause
//
// How much of their time CPUs wait for one lock when nobody is ever preempted: a closed queue of workers, each of which
// thinks, waits its turn, holds the lock, and thinks again (A. L. Scherr's interactive system, 1967, with one server).
// Played through event by event, since hold times are constant and think times are not, for which no formula is exact.
// Integers only; the same numbers give the same answer on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernel/splitmix64.hpp"

namespace spinkick::stress {

/// The nth think time of a worker: even over [0, 2 * mean], so that workers do not fall into step.
[[nodiscard]] constexpr std::uint64_t think_time(std::uint64_t mean, std::uint64_t random) noexcept {
    constexpr unsigned kBits = 16; // of `random`, so that the product stays small
    return (mean * (random >> (64 - kBits))) >> (kBits - 1);
}

struct ClosedQueue {
    static constexpr std::uint32_t kMostWorkers = 64;
    static constexpr std::uint32_t kTurns = 16'384; ///< played, the first ones of each worker included

    std::uint32_t workers = 1;
    std::uint64_t hold = 1; ///< one turn, handing the lock on included

    /// Part of the workers' time that goes by waiting for the lock, in millionths.
    [[nodiscard]] constexpr std::uint64_t waiting_ppm(std::uint64_t think) const noexcept {
        std::array<std::uint64_t, kMostWorkers> arrival{};
        const auto count = std::min(workers, kMostWorkers);
        std::uint64_t random = 1;
        for (std::uint32_t worker = 0; worker < count; ++worker)
            arrival[worker] = think_time(think, random = splitmix64(random));
        std::uint64_t free_at = 0;
        std::uint64_t waited = 0;
        for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            std::uint32_t next = 0;
            for (std::uint32_t worker = 1; worker < count; ++worker)
                if (arrival[worker] < arrival[next])
                    next = worker;
            const auto begin = std::max(free_at, arrival[next]);
            waited += begin - arrival[next];
            free_at = begin + hold;
            arrival[next] = free_at + think_time(think, random = splitmix64(random));
        }
        const auto all = std::max<std::uint64_t>(free_at * count, 1);
        constexpr std::uint64_t kMillion = 1'000'000;
        return all < (~std::uint64_t{0}) / kMillion ? waited * kMillion / all : waited / (all / kMillion);
    }

    /// The think time with which they wait for about so much of their time; 0 if they never do, or do not even without.
    [[nodiscard]] constexpr std::uint64_t think_for(std::uint64_t ppm) const noexcept {
        if (waiting_ppm(0) <= ppm)
            return 0;
        std::uint64_t too_short = 0;
        std::uint64_t long_enough = hold;
        constexpr unsigned kMostDoublings = 24;
        for (unsigned i = 0; i < kMostDoublings && waiting_ppm(long_enough) > ppm; ++i) {
            too_short = long_enough;
            long_enough *= 2;
        }
        constexpr std::uint64_t kParts = 64; // good to a part of the hold time and to 1.6 %
        const auto least = std::max(hold / kParts, long_enough / kParts);
        while (long_enough - too_short > std::max<std::uint64_t>(least, 1)) {
            const auto middle = too_short + (long_enough - too_short) / 2;
            (waiting_ppm(middle) > ppm ? too_short : long_enough) = middle;
        }
        return long_enough;
    }
};

} // namespace spinkick::stress
