// SPDX-License-Identifier: BSD-2-Clause
//
// Does one early halt cascade through the queue, and how far? A waiter that halts early because its predecessor sleeps
// may be the reason for the next one to do so. From traces of pv-queued: each early halt, what it stands behind, and
// how many early halts stand one behind the other. (The question is of the report that had wait_early=preempted
// reverted in Linux.)
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report {

struct CascadeRow {
    static constexpr std::size_t kDepths = 5; ///< 1, 2, 3, 4, more

    std::string policy; ///< off, state, preempted
    std::uint64_t runs = 0, sleeps = 0, early = 0;
    // of `early`
    std::uint64_t by_flag = 0;      ///< the hypervisor's preempted flag
    std::uint64_t behind_spun = 0;  ///< behind a sleeper that had spun for its whole threshold: where a cascade begins
    std::uint64_t behind_early = 0; ///< behind a sleeper that had halted early itself: where one goes on
    std::uint64_t unknown = 0;      ///< the predecessor's events are overwritten
    std::array<std::uint64_t, kDepths> depths{}; ///< of the early halts whose depth is known
    std::uint64_t deepest = 0;
};

struct CascadeBlock {
    std::string lock; ///< with its back end
    std::string platform, timing;
    std::size_t cpus = 0;
    std::vector<CascadeRow> rows;
};

struct CascadeTable {
    std::vector<CascadeBlock> blocks;
    std::vector<std::string> problems;
};

[[nodiscard]] CascadeTable cascade_table(const Results& results);
[[nodiscard]] std::string text_of(const CascadeTable& table);

} // namespace spinkick::report
