// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/sync_point.hpp"

#include "kernel/clock.hpp"
#include "kernel/console.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/options.hpp"

namespace spinkick::test {
namespace {

constexpr Nanoseconds kPatience = seconds(2);
constexpr Nanoseconds kLook = microseconds(500); ///< between two looks, each of which is an exit

constexpr std::uint32_t kMostNoise = 64; ///< bytes: a line that never falls silent is left alone

constinit std::uint32_t points = 0;
constinit bool unanswered = false; ///< one has been: nobody is there

bool answered() noexcept {
    for (const clock::Deadline patience(kPatience); !patience.passed();) {
        if (console_read())
            return true;
        for (const clock::Deadline look(kLook); !look.passed();)
            machine::relax();
    }
    return false;
}

} // namespace

std::optional<std::uint32_t> sync_point() noexcept {
    if (!options::command_line().sync || unanswered)
        return std::nullopt;
    for (std::uint32_t i = 0; i < kMostNoise && console_read(); ++i)
        ; // what came unasked is no answer
    ++points;
    log("# sync %u", points);
    if (answered())
        return points;
    unanswered = true;
    log("# WARN sync point %u had no answer within %llu ms: no host counters from here on; sync=on wants a host that "
        "sends a byte for each `# sync`",
        points, static_cast<unsigned long long>(kPatience.value / 1'000'000));
    return std::nullopt;
}

} // namespace spinkick::test
