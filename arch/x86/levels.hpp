// SPDX-License-Identifier: BSD-2-Clause
//
// Code of a test at the levels above task context: machine::LevelHandlers. The NMI is the one that rescues and
// inspects, with one more thing to do; while it does that, a further NMI gets a stack of its own.
#pragma once

#include "kernel/types.hpp"

namespace spinkick::x86::levels {

/// Called in NMI context for every NMI; runs the handler of the NMI level if this CPU was sent one.
void on_nmi() noexcept;
/// This CPU leaves all levels at once: a rescue.
void leave_all() noexcept;

} // namespace spinkick::x86::levels
