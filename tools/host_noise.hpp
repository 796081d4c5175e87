// SPDX-License-Identifier: BSD-2-Clause
//
// Was the host busy with something else during a part of a boot? Repetitions are interleaved over the locks, so
// whatever disturbs one of them disturbs all locks in it alike; a lock's own noise does not. If all locks are slow in
// the same repetitions, these are no independent values, and nothing may be concluded from their number.
#pragma once

#include <string>
#include <vector>

#include "tools/figures.hpp"

namespace spinkick::report {

struct HostNoise {
    Place place;
    std::optional<std::uint32_t> boot;
    double p = 1; ///< of Friedman's test of the throughputs, locks by repetitions
};

/// The boots in which repetitions move together. At least three locks and four repetitions are needed to see it.
[[nodiscard]] std::vector<HostNoise> host_noise_in(const Figures& figures);

/// "in boot 4 all locks are fast and slow in the same repetitions"
[[nodiscard]] std::string text_of(const HostNoise& noise);

} // namespace spinkick::report
