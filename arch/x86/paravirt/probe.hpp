// SPDX-License-Identifier: BSD-2-Clause
//
// Whether a back end can be used, and the fact that decides it. Decided from CPUID, the number of CPUs and the command
// line alone; the kick itself is proved later (kick_proof.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "arch/x86/paravirt/hypervisor.hpp"
#include "kernel/command_line.hpp"
#include "kernel/text.hpp"

namespace spinkick::paravirt {

enum class Availability : std::uint8_t {
    usable,
    advised_against, ///< works, and the hypervisor says: do not (KVM_HINTS_REALTIME)
    absent,          ///< no such hypervisor
    lacks_feature,   ///< the hypervisor, without the service
    single_cpu,      ///< nobody to kick
    switched_off,    ///< by the command line
    does_not_work,   ///< offered, and the proof failed
};

[[nodiscard]] std::string_view name(Availability availability) noexcept;

/// A back end runs, even if it is not what one would choose.
[[nodiscard]] constexpr bool runs(Availability availability) noexcept {
    return availability == Availability::usable || availability == Availability::advised_against;
}

struct Probe {
    Availability availability = Availability::absent;
    FixedText<200> fact; ///< "no PV_UNHALT: leaf 0x40000001 EAX=0x0000007b"
};

/// What the command line asks for.
struct Options {
    ParavirtChoice paravirt = ParavirtChoice::automatic;
    KickChoice kick = KickChoice::automatic;
};

[[nodiscard]] Probe probe_ipi(const Options& options) noexcept;
[[nodiscard]] Probe probe_kvm(const Hypervisors& hypervisors, std::uint32_t cpus, const Options& options) noexcept;
[[nodiscard]] Probe probe_xen(const Hypervisors& hypervisors, std::uint32_t cpus, const Options& options) noexcept;

/// The lock that a user of this machine should take, as "pv-queued" on "kvm", and why.
struct DefaultLock {
    std::string_view lock;
    std::string_view backend;
    FixedText<240> reason;
};
/// From the probes as they stand after the proof.
[[nodiscard]] DefaultLock choose_default_lock(const Hypervisors& hypervisors, std::uint32_t cpus,
                                              const Options& options, const Probe& kvm, const Probe& xen) noexcept;

} // namespace spinkick::paravirt
