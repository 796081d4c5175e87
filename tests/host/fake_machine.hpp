// SPDX-License-Identifier: BSD-2-Clause
//
// The machine below the runner in the host tests: as many CPUs, as usable back ends and as patient a watchdog as a test
// says.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kernel/test/test.hpp"

namespace spinkick::test {

struct FakeMachine {
    std::uint32_t cpus = 4;
    std::map<Backend, std::string> unavailable; ///< reason by back end
    std::uint64_t now_ns = 0;                   ///< every look at the clock adds 1000
    std::string console_input;                  ///< bytes that nobody has read yet
    std::uint32_t byte_after_looks = 0;     ///< so many that find nothing, then a byte; 0: none ever comes by itself
    std::uint64_t lock_events = 0;          ///< every counter of every CPU
    void (*look_hook)() noexcept = nullptr; ///< the watchdog's
};
extern FakeMachine fake_machine;

/// What a body that is stuck does here: the fake watchdog throws it out.
struct ThrownOut {};

} // namespace spinkick::test
