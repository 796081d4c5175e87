// SPDX-License-Identifier: BSD-2-Clause
//
// The way out of a test body that will never return: an NMI sends the CPU back to where the body was called. Nothing is
// unwound: test bodies own no resources but the locks under test, and whoever rescues resets those.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/x86/traps.hpp"

namespace spinkick::x86 {

struct RescueContext {
    std::uint64_t rsp = 0;
    std::uint64_t armed = 0; ///< non-zero while a body runs under this context
};
static_assert(offsetof(RescueContext, rsp) == 0 && offsetof(RescueContext, armed) == 8, "entry.S writes both");

/// Calls fn(argument). True if it returned; false if this CPU was rescued out of it.
extern "C" bool run_rescuable(void (*fn)(void*), void* argument, RescueContext* context);

/// Asks `cpu` by NMI to leave its body. It may have to be asked again: a CPU that holds the console lock does not
/// leave.
void rescue(CpuId cpu) noexcept;

} // namespace spinkick::x86
