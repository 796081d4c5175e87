// SPDX-License-Identifier: BSD-2-Clause
//
// Which scenarios every lock goes through, and how long. A lock that does not exclude must fail one of them.
#pragma once

#include <array>
#include <string_view>

#include "tests/host/checker/simulation.hpp"

namespace spinkick::checker {

struct PlannedScenario {
    const char* name;
    Scenario scenario;
    bool random = false;
    double seconds = 1;       ///< of CPU time, per lock
    double long_seconds = 30; ///< the same with --long
};

inline constexpr auto kTso = MemoryModel::tso;
inline constexpr auto kWeak = MemoryModel::weak;

// clang-format off
inline constexpr auto kPlan = std::to_array<PlannedScenario>({
    {.name = "2x2",        .scenario = {.cpus = 2, .rounds = 2}},
    {.name = "2x1-frees",  .scenario = {.cpus = 2, .rounds = 1, .frees = true}},
    {.name = "3x1-frees",  .scenario = {.cpus = 3, .rounds = 1, .frees = true}},
    {.name = "3x1-handler-waits", .scenario = {.cpus = 3, .rounds = 1, .interrupts = 1, .handler_waits = true}},
    {.name = "2x2-weak",   .scenario = {.cpus = 2, .rounds = 2, .memory = kWeak}},
    {.name = "2x1-try",    .scenario = {.cpus = 2, .rounds = 1, .try_first = true, .memory = kWeak}},
    {.name = "2x2-try",    .scenario = {.cpus = 2, .rounds = 2, .try_first = true, .memory = kWeak}},
    {.name = "3x1",        .scenario = {.cpus = 3, .rounds = 1}},
    {.name = "3x1-weak",   .scenario = {.cpus = 3, .rounds = 1, .memory = kWeak}},
    {.name = "4x1",        .scenario = {.cpus = 4, .rounds = 1}},
    {.name = "4x3-random", .scenario = {.cpus = 4, .rounds = 3, .spurious = 1, .memory = kWeak}, .random = true},
    {.name = "4x2-random", .scenario = {.cpus = 4, .rounds = 2, .locks = 2, .memory = kWeak}, .random = true},
    {.name = "8x2-random", .scenario = {.cpus = 8, .rounds = 2, .locks = 2, .spurious = 1, .interrupts = 1, .wake = WakeModel::armed}, .random = true},
    {.name = "2x2-armed",  .scenario = {.cpus = 2, .rounds = 2, .spurious = 1, .wake = WakeModel::armed}},
    {.name = "3x1-armed",  .scenario = {.cpus = 3, .rounds = 1, .spurious = 1, .memory = kWeak, .wake = WakeModel::armed}},
    {.name = "2x2-cross",  .scenario = {.cpus = 2, .rounds = 2, .locks = 2, .memory = kWeak}},
    {.name = "2x1-nested", .scenario = {.cpus = 2, .rounds = 1, .locks = 2, .interrupts = 1}},
    {.name = "3x1-nested", .scenario = {.cpus = 3, .rounds = 1, .locks = 2, .interrupts = 1}},
    {.name = "2x2-forgets", .scenario = {.cpus = 2, .rounds = 2, .fault = MachineFault::forgets_kicks}},
    {.name = "2x2-drops",  .scenario = {.cpus = 2, .rounds = 2, .fault = MachineFault::drops_kicks}},
    {.name = "3x1-sleeps", .scenario = {.cpus = 3, .rounds = 1, .locks = 2, .interrupts = 1, .fault = MachineFault::sleeps_through}},
});
// clang-format on

/// A lock that never sleeps has no use for the ways in which a sleep ends.
[[nodiscard]] constexpr bool applies(const PlannedScenario& planned, const LockUnderCheck& lock) {
    // A waiter of the byte lock that was interrupted by another wait is kicked by it, whatever became of its own kick:
    // it suffers nothing from a machine that loses that one.
    const bool is_byte = std::string_view(lock.name).starts_with("byte");
    if (planned.scenario.fault == MachineFault::sleeps_through && is_byte)
        return false;
    // It looks at its count after the release, as it did in Linux: not a lock for memory that the next holder frees.
    if (planned.scenario.frees && is_byte)
        return false;
    // In every other lock whoever came first, or is first in the queue, is waited for, whatever it does.
    if (planned.scenario.handler_waits && !is_byte)
        return false;
    return lock.sleeps || planned.random ||
           (planned.scenario.wake == WakeModel::sticky && planned.scenario.fault == MachineFault::none);
}

} // namespace spinkick::checker
