// SPDX-License-Identifier: BSD-2-Clause
//
// The machine as it is, without any service of a hypervisor: what every lock needs, and nobody sleeps. The sleeping
// back ends build on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/x86/flight.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/time_stamp.hpp"
#include "kernel/machine.hpp"
#include "kernel/sync/concepts.hpp"
#include "kernel/sync/tuning.hpp"
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
    /// The hint of Tuning::relax_hint: a load of a line that all spinning CPUs share and nobody writes.
    static void relax() noexcept {
        const auto hint = sync::tuning.relax_hint.load(std::memory_order_relaxed);
        if (hint == sync::RelaxHint::pause) [[likely]]
            x86::pause();
        else if (hint == sync::RelaxHint::lfence)
            x86::lfence();
        else
            x86::no_hint();
    }
    static void add_by_owner(std::atomic<std::uint16_t>& word, std::uint16_t amount) noexcept {
        x86::add(word, amount);
    }
    static void count(sync::LockEvent event, std::uint64_t n) noexcept { x86::count(event, n); }
    static void record(sync::FlightEvent event, std::uint32_t argument) noexcept {
        if (stress::flight_recording.load(std::memory_order_relaxed))
            x86::record(event, argument);
    }
    // For the back ends that sleep.
    [[nodiscard]] static std::uint32_t cpu_bound() noexcept { return machine::cpus_found(); }
    static void record_blocked(Tsc length) noexcept { x86::count_blocked(length); }
    [[nodiscard]] static InterruptState disable_interrupts() noexcept { return x86::disable_interrupts(); }
    static void restore_interrupts(InterruptState state) noexcept { x86::restore_interrupts(state); }
    [[nodiscard]] static Tsc now() noexcept { return x86::time_stamp(); }
};
static_assert(sync::LockMachine<Native>);

} // namespace spinkick::paravirt
