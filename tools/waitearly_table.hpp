// SPDX-License-Identifier: BSD-2-Clause
//
// bench.waitearly in the layout of the report that had a policy of pv_wait_early reverted: records a second under each
// policy, and the counters that are to explain it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/figures.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

inline constexpr std::array<const char*, 5> kWaitEarlyCounters{"pv_wait_again", "pv_wait_early", "pv_wait_head",
                                                               "pv_wait_node", "pv_vcpu_is_preempted"};

struct WaitEarlyRow {
    std::string_view policy; ///< off, state, preempted
    std::vector<double> per_second, shootdown_ns;
    std::array<std::uint64_t, kWaitEarlyCounters.size()> counters{}; ///< all repetitions and guests
};

struct WaitEarlyBlock {
    Place place;      ///< without a bench
    std::string lock; ///< with its back end
    std::vector<WaitEarlyRow> rows;
};

struct WaitEarlyTable {
    std::vector<WaitEarlyBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] WaitEarlyTable waitearly_table(const Results& results);
[[nodiscard]] std::string text_of(const WaitEarlyTable& table);

} // namespace spinkick::report
