// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/calibrated_work.hpp"

#include "kernel/clock.hpp"
#include "kernel/machine.hpp"

namespace spinkick::stress {
namespace {

constexpr std::uint64_t kProbeUnits = 20'000;
constexpr unsigned kTries = 8;
constinit std::uint64_t probe_ns = 0; ///< fastest time for kProbeUnits

} // namespace

void work(std::uint64_t units) noexcept {
    volatile std::uint64_t sink = 0;
    for (std::uint64_t i = 0; i < units; ++i)
        sink = i;
    (void)sink;
}

std::uint64_t units_for(Nanoseconds span) noexcept {
    if (probe_ns == 0) {
        probe_ns = ~0ull;
        for (unsigned i = 0; i < kTries; ++i) {
            const auto begin = machine::time_stamp();
            work(kProbeUnits);
            const auto ns = clock::to_nanoseconds(machine::time_stamp() - begin).value;
            if (ns != 0 && ns < probe_ns)
                probe_ns = ns;
        }
    }
    const auto units = span.value * kProbeUnits / probe_ns;
    return units == 0 ? 1 : units;
}

} // namespace spinkick::stress
