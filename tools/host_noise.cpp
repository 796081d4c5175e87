// SPDX-License-Identifier: BSD-2-Clause
#include "tools/host_noise.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "tools/statistics.hpp"

namespace spinkick::report {
namespace {

/// One quiet boot in a thousand is called noisy.
constexpr double kLevel = 0.001;
constexpr std::size_t kLeastLocks = 3;
constexpr std::size_t kLeastRepetitions = 4;

} // namespace

std::vector<HostNoise> host_noise_in(const Figures& figures) {
    using Boot = std::pair<Place, std::optional<std::uint32_t>>;
    // By boot and lock: repetition to the values of all guests.
    std::map<Boot, std::map<std::string, std::map<std::uint64_t, std::vector<double>>>> boots;
    for (const FigureId& id : figures.ids())
        if (id.figure == Figure::acquisitions_per_s)
            for (const FigureValue& value : figures.all(id))
                if (value.repetition)
                    boots[{id.place, value.boot}][id.lock][*value.repetition].push_back(value.value);
    std::vector<HostNoise> noisy;
    for (const auto& [boot, locks] : boots) {
        std::size_t repetitions = locks.begin()->second.size();
        for (const auto& [lock, values] : locks)
            repetitions = std::min(repetitions, values.size());
        if (locks.size() < kLeastLocks || repetitions < kLeastRepetitions)
            continue;
        std::vector<std::vector<double>> rows;
        for (const auto& [lock, values] : locks) {
            std::vector<double> row;
            for (const auto& [repetition, guests] : values)
                if (row.size() < repetitions)
                    row.push_back(mean_of(guests));
            rows.push_back(std::move(row));
        }
        if (const double p = friedman_test(rows).p; p <= kLevel)
            noisy.push_back({boot.first, boot.second, p});
    }
    return noisy;
}

std::string text_of(const HostNoise& noise) {
    return fmt::format("{}all locks are fast and slow in the same repetitions ({})",
                       noise.boot ? fmt::format("in boot {} ", *noise.boot) : "", text_of(noise.place));
}

} // namespace spinkick::report
