// SPDX-License-Identifier: BSD-2-Clause
//
// What a lock shows to somebody who has to explain a stall: how its word is to be read, and where a CPU stands among
// its waiters. Optional for a lock; without it a dump shows the bare word.
#pragma once

#include <cstdint>

#include "kernel/types.hpp"

namespace spinkick::sync {

/// How word() is made; kernel/stress/lock_text.cpp puts it into words.
enum class WordLayout : std::uint8_t {
    flag,      ///< bit 0: held
    owner,     ///< bits 7:0: held; bits 63:32: CPU of the holder + 1
    spinners,  ///< bits 7:0: held; from bit 16: waiters that sleep, or are about to
    ticket,    ///< bits 15:0: number served; bits 31:16: next number
    pv_ticket, ///< the same by twos; bit 0: somebody sleeps
    queued,    ///< lock_word.hpp: locked, pending, tail
};

/// Where a CPU stands in the queue that its innermost wait is in. Read while others go on: a hint.
struct WaiterView {
    bool queued = false;     ///< it has a node
    std::uint32_t ahead = 0; ///< waiters before it
    CpuId behind{};          ///< the nearest of them, if there is one
    const char* state = "";  ///< of its node, in the words of the lock's header
};

} // namespace spinkick::sync
