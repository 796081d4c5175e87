// SPDX-License-Identifier: BSD-2-Clause
//
// Two stacks and one thread. swapcontext() would make a system call for each switch, and the checker switches a million
// times a second; this saves what the System V ABI asks a function to keep, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinkick::checker {

/// Pushes the kept registers, stores the stack pointer in *save and continues where the stack pointer `load` was saved.
extern "C" void spinkick_switch_stack(void** save, void* load) noexcept;

/// A stack pointer for spinkick_switch_stack() that begins `entry` at the top of the stack. entry never returns.
[[nodiscard]] inline void* fresh_stack(std::byte* top, void (*entry)()) noexcept {
    auto* sp = reinterpret_cast<std::uintptr_t*>(top);
    *--sp = 0; // the return address of entry, where a call would have left it: 8 below a multiple of 16
    *--sp = reinterpret_cast<std::uintptr_t>(entry);
    for (int kept = 0; kept < 6; ++kept)
        *--sp = 0;
    return sp;
}

} // namespace spinkick::checker
