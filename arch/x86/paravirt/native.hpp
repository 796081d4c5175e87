// SPDX-License-Identifier: BSD-2-Clause
//
// The machine as it is, without any service of a hypervisor: what every lock needs, and nobody sleeps. The sleeping
// back ends build on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/time_stamp.hpp"
#include "kernel/sync/concepts.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt {

struct Native {
    static constexpr const char* kName = "native";
    static constexpr std::uint32_t kMaxCpus = spinkick::kMaxCpus;

    template <class T>
    using Atomic = std::atomic<T>;
    using InterruptState = x86::InterruptState;

    [[nodiscard]] static CpuId this_cpu() noexcept { return x86::this_cpu(); }
    [[nodiscard]] static bool in_nmi() noexcept { return x86::in_nmi(); }
    static void relax() noexcept { x86::pause(); }
    static void count(sync::LockEvent event, std::uint64_t n) noexcept { x86::count(event, n); }
    [[nodiscard]] static InterruptState disable_interrupts() noexcept { return x86::disable_interrupts(); }
    static void restore_interrupts(InterruptState state) noexcept { x86::restore_interrupts(state); }
    [[nodiscard]] static Tsc now() noexcept { return x86::time_stamp(); }
};
static_assert(sync::LockMachine<Native>);

} // namespace spinkick::paravirt
