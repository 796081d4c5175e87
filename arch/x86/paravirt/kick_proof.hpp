// SPDX-License-Identifier: BSD-2-Clause
//
// A kick that is offered is not yet a kick that works: the instruction may fault, return an error, never return, or
// wake nobody. So it is tried on an application processor, which can be rescued, while the boot CPU watches the clock:
//
//   1. the AP sends a kick to itself: the call must come back, without fault or error;
//   2. the AP goes to sleep, is seen asleep, and is kicked by the boot CPU: it must wake, and not before.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/text.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt {

enum class KickOutcome : std::uint8_t {
    works,
    fault,          ///< the instruction raised an exception
    error,          ///< the call returned an error
    never_returned, ///< the call did not come back in time
    no_sleep,       ///< the sleep returned at once, again and again
    no_wake,        ///< the kick did not end the sleep
    no_cpu,         ///< no idle application processor to try it on
};

using KickText = FixedText<160>;

struct KickProof {
    KickOutcome outcome = KickOutcome::no_cpu;
    KickText how;               ///< what happened, as a sentence
    Nanoseconds kick_to_wake{}; ///< if it works: one sample
};

/// One way to sleep and to kick.
struct KickTransport {
    std::string_view name;
    /// The kick as a question: sends to `target`, true if it was accepted; else `how` says why not, `outcome` what it
    /// was.
    bool (*try_send)(CpuId target, KickOutcome& outcome, KickText& how) noexcept;
    /// The kick as the back end does it, without a token.
    void (*send)(CpuId target) noexcept;
    /// One sleep of the calling CPU, entered and left with interrupts masked.
    void (*sleep)() noexcept;
};

/// Runs the proof. Boot CPU, when the APs are idle. Takes some milliseconds if all is well, some seconds if not.
[[nodiscard]] KickProof prove(const KickTransport& transport) noexcept;

[[nodiscard]] const KickTransport& ipi_transport() noexcept;
[[nodiscard]] const KickTransport& kvm_vmcall_transport() noexcept;
[[nodiscard]] const KickTransport& kvm_vmmcall_transport() noexcept;
[[nodiscard]] const KickTransport& kvm_remrd_transport() noexcept;
[[nodiscard]] const KickTransport& xen_evtchn_transport() noexcept;

} // namespace spinkick::paravirt
