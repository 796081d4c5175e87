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
#include "arch/x86/percpu.hpp"
#include "arch/x86/time_stamp.hpp"
#include "arch/x86/xen_pv/active.hpp"

namespace spinkick::paravirt_tests::event_ports {

namespace abi = paravirt::xen_abi;

inline constexpr std::uint32_t kNoPort = 0;

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

inline std::atomic_ref<std::uint64_t> pending_word(std::uint32_t port) noexcept {
    return std::atomic_ref(paravirt::Xen::event_page().evtchn_pending[port / 64 % 64]);
}
inline std::atomic_ref<std::uint64_t> mask_word(std::uint32_t port) noexcept {
    return std::atomic_ref(paravirt::Xen::event_page().evtchn_mask[port / 64 % 64]);
}
inline constexpr std::uint64_t bit_of(std::uint32_t port) noexcept { return std::uint64_t{1} << (port % 64); }

// seq_cst: these bits are Xen's too, and each test says what comes before what.
[[nodiscard]] inline bool is_pending(std::uint32_t port) noexcept {
    return (pending_word(port).load(std::memory_order_seq_cst) & bit_of(port)) != 0;
}
inline void clear_pending(std::uint32_t port) noexcept {
    pending_word(port).fetch_and(~bit_of(port), std::memory_order_seq_cst);
}
inline void set_masked(std::uint32_t port, bool masked) noexcept {
    if (masked)
        mask_word(port).fetch_or(bit_of(port), std::memory_order_seq_cst);
    else
        mask_word(port).fetch_and(~bit_of(port), std::memory_order_seq_cst);
}

inline void close(std::uint32_t port) noexcept {
    if (port == kNoPort)
        return;
    set_masked(port, true);
    const abi::evtchn_port argument{port};
    (void)event_call(abi::EVTCHNOP_close, &argument);
    clear_pending(port);
}
inline std::int64_t send(std::uint32_t port) noexcept {
    const abi::evtchn_port argument{port};
    return event_call(abi::EVTCHNOP_send, &argument);
}

/// The flags of a vCPU that say that some unmasked port of it is pending. An HVM guest that has set no callback is not
/// interrupted by them: nobody clears them but the test. A PV guest is.
[[nodiscard]] inline bool upcall_flag(CpuId cpu) noexcept {
    return std::atomic_ref(const_cast<std::uint8_t&>(paravirt::Xen::info_of(cpu)->evtchn_upcall_pending))
               .load(std::memory_order_seq_cst) != 0;
}
[[nodiscard]] inline std::uint64_t selector(CpuId cpu) noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(paravirt::Xen::info_of(cpu)->evtchn_pending_sel))
        .load(std::memory_order_seq_cst);
}
inline bool take_upcall_flag(CpuId cpu) noexcept {
    return std::atomic_ref(const_cast<std::uint8_t&>(paravirt::Xen::info_of(cpu)->evtchn_upcall_pending))
               .exchange(0, std::memory_order_seq_cst) != 0;
}
inline std::uint64_t take_selector(CpuId cpu) noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(paravirt::Xen::info_of(cpu)->evtchn_pending_sel))
        .exchange(0, std::memory_order_seq_cst);
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
