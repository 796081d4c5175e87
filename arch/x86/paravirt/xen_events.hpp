// SPDX-License-Identifier: BSD-2-Clause
//
// The ports of Xen's event channels, in either of the two forms in which Xen shares them with a guest (xen
// public/event_channel.h, and the design "FIFO-based event channels" of Xen 4.4). Everything above asks about a port.
//
//   two-level  a pending and a mask bit for each of 4096 ports, in the shared page; a selector in each vcpu_info, whose
//              bit says which word of 64 ports to look at
//   FIFO       a word for each port: PENDING | MASKED | LINKED | BUSY | LINK 16:0. A port that is sent to and unmasked
//              is linked behind the last one of its priority, on the queue of its vCPU; a control block of each vCPU
//              has the heads and, in `ready`, a bit for each queue that was empty before
//
//              send:  PENDING 0->1; unless MASKED or LINKED: LINKED, and the tail's LINK or the head; ready; upcall
//              flag take:  xchg ready; head; LINKED and LINK cleared by one CAS, which says what comes next; then the
//              event
//
// In both a masked port becomes pending and interrupts nobody, and a poll of it ends.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/xen_abi.hpp"
#include "kernel/command_line.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt::xen_events {

/// The form in use. Two-level until use_fifo() has succeeded.
[[nodiscard]] EventChannels form() noexcept;

/// Masks every port of the two-level form. Boot CPU, once, before any port exists.
void mask_all() noexcept;
/// Changes this guest over to FIFO, for good; the boot CPU, with its vCPU id, masked against upcalls. What is masked
/// and what is pending stays so. A refusal is Xen's error (ENOSYS under KVM), and leaves the two-level form.
[[nodiscard]] HypercallResult use_fifo(XenVcpuId vcpu) noexcept;
/// Gives Xen the control block of a vCPU, before it has a port: it, or whoever starts it. Nothing to do in the
/// two-level form, or a second time.
[[nodiscard]] HypercallResult add_vcpu(CpuId cpu, XenVcpuId vcpu) noexcept;

[[nodiscard]] bool is_pending(std::uint32_t port) noexcept;
[[nodiscard]] bool is_masked(std::uint32_t port) noexcept;
/// True if it was pending. A full barrier: what the caller looks at next is looked at after the clearing.
bool clear_pending(std::uint32_t port) noexcept;
void mask(std::uint32_t port) noexcept;
/// A port that is pending raises no upcall by that: it may need EVTCHNOP_unmask.
void unmask(std::uint32_t port) noexcept;

/// Whether the vCPU has been told where to look for this port.
[[nodiscard]] bool is_announced(CpuId cpu, const volatile xen_abi::vcpu_info& info, std::uint32_t port) noexcept;
/// As if something had been announced, when an upcall was left in the middle: the next one looks at everything.
void announce_again(CpuId cpu, xen_abi::vcpu_info& info) noexcept;

namespace detail {

/// Which words of the two-level form have been announced to the owner of `info`; they are not any more.
[[nodiscard]] std::uint64_t take_selector(xen_abi::vcpu_info& info) noexcept;
[[nodiscard]] std::uint64_t unmasked_and_pending(std::size_t word) noexcept;
/// The next port on the queues of a CPU, taken off them; 0 if they are empty. `ready` is the caller's between calls.
[[nodiscard]] std::uint32_t dequeue(CpuId cpu, std::uint32_t& ready) noexcept;

} // namespace detail

/// Calls f(port) for every port that was announced to this vCPU, is pending and is not masked. Not those of this vCPU
/// alone in the two-level form, where a word is shared by all: f looks who owns it, and clears the pending bit. The
/// upcall flag has been cleared before, in an order that Xen's reverses: flag, announcement, port.
template <class F>
void take_announced(CpuId cpu, xen_abi::vcpu_info& info, F&& f) noexcept {
    if (form() == EventChannels::fifo) {
        std::uint32_t ready = 0;
        while (const auto port = detail::dequeue(cpu, ready))
            if (is_pending(port) && !is_masked(port))
                f(port);
        return;
    }
    for (auto words = detail::take_selector(info); words != 0; words &= words - 1) {
        const auto word = static_cast<std::uint32_t>(std::countr_zero(words));
        for (auto ports = detail::unmasked_and_pending(word); ports != 0; ports &= ports - 1)
            f(word * 64 + static_cast<std::uint32_t>(std::countr_zero(ports)));
    }
}

} // namespace spinkick::paravirt::xen_events
