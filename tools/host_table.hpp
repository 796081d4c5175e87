// SPDX-License-Identifier: BSD-2-Clause
//
// What KVM counted during each benchmark beside what the guest counted itself: the halts, kicks and yields of the same
// interval, and what the host made of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

/// Sums over all repetitions of a lock that have the host's counters.
struct HostRow {
    std::string lock;                              ///< with its back end
    std::uint64_t halts = 0, kicks_and_yields = 0; ///< of the guest
    std::uint64_t halt_exits = 0, halt_wakeup = 0, halt_attempted_poll = 0, halt_successful_poll = 0;
    std::uint64_t directed_yield_attempted = 0, directed_yield_successful = 0, preemption_reported = 0;
    std::uint64_t irq_injections = 0, exits = 0;
};

struct HostBlock {
    Place place;
    std::vector<HostRow> rows;
};

struct HostTable {
    std::vector<HostBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] HostTable host_table(const Results& results);
[[nodiscard]] std::string text_of(const HostTable& table);

} // namespace spinkick::report
