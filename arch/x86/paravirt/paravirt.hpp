// SPDX-License-Identifier: BSD-2-Clause
//
// The one place that knows which paravirtual back ends this machine has. Order: detect() (hypervisor.hpp) as early as
// there is a console; init_this_cpu() on every CPU, boot CPU first, with traps up and on the final page tables;
// prove_and_choose() on the boot CPU, once, when all CPUs are idle. Then the answers below stand.
#pragma once

#include <cstdint>
#include <string_view>

#include "arch/x86/paravirt/probe.hpp"
#include "kernel/test/test.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt {

/// Registers the calling CPU: clock page, steal time or runstate, vcpu_info and event channel, whatever there is. Which
/// form event channels take is asked of the boot CPU only.
void init_this_cpu(EventChannels event_channels = EventChannels::two_level) noexcept;

/// Probes every back end, proves its kick, chooses the default lock, and says all of it on the console.
void prove_and_choose(const Options& options, std::uint32_t cpus) noexcept;

/// What came of a back end; `any` and `native` are always usable.
[[nodiscard]] const Probe& probe_of(test::Backend backend) noexcept;
/// Why a back end cannot run, as a fact; empty if it can.
[[nodiscard]] std::string_view unavailable_reason(test::Backend backend) noexcept;
/// Why waiters on a back end cannot yield to a vCPU that is preempted, as a fact; empty if they can.
[[nodiscard]] std::string_view directed_yield_unavailable(test::Backend backend) noexcept;
/// How a back end kicks at present ("hypercall (vmmcall)"); empty if it does not.
[[nodiscard]] std::string_view kick_transport(test::Backend backend) noexcept;
/// The ways to kick that were proved on a back end, 0 to 2: with kick=auto all that it has, else the one asked for.
[[nodiscard]] std::uint32_t kick_transports(test::Backend backend) noexcept;
/// Kicks by way `n` of kick_transports() from now on; the first is what boot chose. May be called while locks are in
/// use: every way ends a sleep, whichever it began under. An `n` that does not exist changes nothing.
void use_kick_transport(test::Backend backend, std::uint32_t n) noexcept;
[[nodiscard]] const DefaultLock& default_lock() noexcept;
/// Polls and sends that the Xen back end has made, over all CPUs.
struct EventChannelCounts {
    std::uint64_t polls = 0, sends = 0;
};
[[nodiscard]] EventChannelCounts event_channel_counts() noexcept;

/// Forgets what a CPU that was thrown out of a wait has left behind, in every back end.
void reset_cpu(CpuId cpu) noexcept;

} // namespace spinkick::paravirt
