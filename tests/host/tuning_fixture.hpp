// SPDX-License-Identifier: BSD-2-Clause
//
// The switches of the locks in a test: few spins, and everything put back at its end.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "kernel/sync/tuning.hpp"

namespace spinkick::host {

/// Spins before a sleep: few, so that the paths with sleeps in them are the ones taken.
inline constexpr std::uint64_t kFewSpins = 50;

/// All switches that say how long a waiter spins before it sleeps.
inline void set_thresholds(std::uint64_t spins) noexcept {
    sync::tuning.spin_threshold = spins;
    sync::tuning.qspin_threshold = spins;
    sync::tuning.byte_timeout = spins;
}

class TuningFixture : public ::testing::Test {
  protected:
    TuningFixture() { set_thresholds(kFewSpins); }
    ~TuningFixture() override {
        const sync::Tuning fresh;
        sync::tuning.spin_threshold = fresh.spin_threshold.load();
        sync::tuning.qspin_threshold = fresh.qspin_threshold.load();
        sync::tuning.byte_timeout = fresh.byte_timeout.load();
        sync::tuning.kick_holder = fresh.kick_holder.load();
        sync::tuning.stealing = fresh.stealing.load();
        sync::tuning.steal_interval = fresh.steal_interval.load();
        sync::tuning.wait_early = fresh.wait_early.load();
        sync::tuning.directed_yield = fresh.directed_yield.load();
        sync::tuning.relax_hint = fresh.relax_hint.load();
        sync::tuning.drop_every_nth_kick = fresh.drop_every_nth_kick.load();
    }
};

} // namespace spinkick::host
