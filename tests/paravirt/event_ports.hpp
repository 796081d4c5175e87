// SPDX-License-Identifier: BSD-2-Clause
//
// Xen's event channels by hand, for the tests of what Xen promises about them: ports of their own beside the one that
// the back end kicks by, their bits, and a poll that ends by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/paravirt/xen_events.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/time_stamp.hpp"
#include "arch/x86/xen_pv/active.hpp"

namespace spinkick::paravirt_tests::event_ports {

namespace abi = paravirt::xen_abi;

inline constexpr std::uint32_t kNoPort = 0;

/// Set by bench.event_channels: Xen takes a vCPU's own upcall vector never back, and interrupts it for as long as its
/// upcall flag is set. A test that leaves the flag to be looked at cannot run any more, and says so.
inline constinit bool vcpu_vector_given = false;
inline constexpr const char* kVectorFact =
    "bench.event_channels has given a vCPU an upcall vector of its own, for good";

[[nodiscard]] inline std::int64_t event_call(std::uint64_t command, const void* argument) noexcept {
    const auto result =
        paravirt::xen_hypercall(abi::Hypercall::event_channel_op, command, reinterpret_cast<std::uint64_t>(argument));
    constexpr std::int64_t kFaulted = -0x1000 - 1; // no error of Xen's
    return result.fault.happened ? kFaulted - result.fault.vector : result.value;
}

/// An IPI port of `cpu`, masked as all are; kNoPort if Xen refuses.
[[nodiscard]] inline std::uint32_t bind_ipi(CpuId cpu) noexcept {
    abi::evtchn_bind_ipi bind{raw(x86::percpu_of(cpu).xen_vcpu_id), 0};
    return event_call(abi::EVTCHNOP_bind_ipi, &bind) >= 0 && bind.port < abi::kPorts ? bind.port : kNoPort;
}

[[nodiscard]] inline bool is_pending(std::uint32_t port) noexcept { return paravirt::xen_events::is_pending(port); }
inline void clear_pending(std::uint32_t port) noexcept { (void)paravirt::xen_events::clear_pending(port); }
inline void set_masked(std::uint32_t port, bool masked) noexcept {
    if (masked)
        paravirt::xen_events::mask(port);
    else
        paravirt::xen_events::unmask(port);
}

/// A port that bind_ipi() gave.
inline void close_bound(std::uint32_t port) noexcept {
    set_masked(port, true);
    const abi::evtchn_port argument{port};
    (void)event_call(abi::EVTCHNOP_close, &argument);
    clear_pending(port);
}
inline void close(std::uint32_t port) noexcept {
    if (port != kNoPort)
        close_bound(port);
}
inline std::int64_t send(std::uint32_t port) noexcept {
    const abi::evtchn_port argument{port};
    return event_call(abi::EVTCHNOP_send, &argument);
}

[[nodiscard]] inline abi::vcpu_info& info_of(CpuId cpu) noexcept {
    return const_cast<abi::vcpu_info&>(*paravirt::Xen::info_of(cpu));
}

/// What says to a vCPU that some unmasked port of it is pending: a flag, and where to look. An HVM guest that has set
/// no callback is not interrupted by them: nobody clears them but the test. A PV guest is.
[[nodiscard]] inline bool upcall_flag(CpuId cpu) noexcept {
    return std::atomic_ref(const_cast<std::uint8_t&>(paravirt::Xen::info_of(cpu)->evtchn_upcall_pending))
               .load(std::memory_order_seq_cst) != 0;
}
[[nodiscard]] inline bool is_announced(CpuId cpu, std::uint32_t port) noexcept {
    return paravirt::xen_events::is_announced(cpu, *paravirt::Xen::info_of(cpu), port);
}
inline bool take_upcall_flag(CpuId cpu) noexcept {
    return std::atomic_ref(const_cast<std::uint8_t&>(paravirt::Xen::info_of(cpu)->evtchn_upcall_pending))
               .exchange(0, std::memory_order_seq_cst) != 0;
}
/// As if nothing had been announced to a vCPU; ports stay pending.
inline void forget_announced(CpuId cpu) noexcept {
    (void)take_upcall_flag(cpu);
    paravirt::xen_events::take_announced(cpu, info_of(cpu), [](std::uint32_t) noexcept {});
}

/// Xen's system time; 0 if the page of this CPU cannot be read.
[[nodiscard]] inline Nanoseconds system_time() noexcept {
    paravirt::pvclock::Reading reading;
    const auto& page = paravirt::Xen::info_of(x86::this_cpu())->time;
    return paravirt::pvclock::read(page, reading) ? reading.at(x86::time_stamp()) : Nanoseconds{0};
}

/// SCHEDOP_poll of one port, until `deadline` at the latest. The result of the call.
inline std::int64_t poll(std::uint32_t port, Nanoseconds deadline) noexcept {
    const abi::sched_poll argument{reinterpret_cast<std::uint64_t>(&port), 1, 0, deadline.value};
    return paravirt::xen_hypercall(abi::Hypercall::sched_op, abi::SCHEDOP_poll,
                                   reinterpret_cast<std::uint64_t>(&argument))
        .value;
}

} // namespace spinkick::paravirt_tests::event_ports
