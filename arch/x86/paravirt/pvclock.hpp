// SPDX-License-Identifier: BSD-2-Clause
//
// The paravirtual clock that KVM and Xen share: a page per vCPU that says how this vCPU's TSC maps to nanoseconds. Used
// for the TSC's frequency, for the "guest was stopped" flag, and by tests; the kernel's own time is the TSC
// (arch/x86/tsc.hpp).
#pragma once

#include <cstdint>

#include "arch/x86/paravirt/pvclock_abi.hpp"
#include "kernel/types.hpp"

namespace spinkick::paravirt::pvclock {

using TimeInfo = pvclock_abi::pvclock_vcpu_time_info;

/// ns = (delta << shift or >> -shift) * mul / 2^32. In two products of 64 bits: nothing here needs a 128-bit type.
[[nodiscard]] constexpr std::uint64_t scale(std::uint64_t delta, std::uint32_t mul, std::int8_t shift) noexcept {
    if (shift >= 0)
        delta <<= shift;
    else
        delta >>= -shift;
    return (delta >> 32) * mul + (((delta & 0xffffffff) * mul) >> 32);
}

/// The TSC frequency that mul and shift stand for; 0 if they cannot be right.
[[nodiscard]] constexpr std::uint64_t khz_of(std::uint32_t mul, std::int8_t shift) noexcept {
    constexpr int kMostShift = 20; // 2^20 below or above 1 GHz: no processor is there, and nothing below overflows
    if (mul == 0 || shift > kMostShift || shift < -kMostShift)
        return 0;
    // ticks in a millisecond = 10^6 ns * 2^32 / mul, undone the shift
    const std::uint64_t ticks = (std::uint64_t{1'000'000} << 32) / mul;
    if (shift >= 0)
        return ticks >> shift;
    return ticks > (~std::uint64_t{0} >> -shift) ? 0 : ticks << -shift;
}

/// A consistent copy of a page.
struct Reading {
    std::uint64_t tsc_timestamp = 0;
    std::uint64_t system_time = 0;
    std::uint32_t mul = 0;
    std::int8_t shift = 0;
    std::uint8_t flags = 0;
    std::uint32_t retries = 0;

    /// Nanoseconds at `tsc`. A TSC from before the timestamp gives the timestamp's time, not one far ahead.
    [[nodiscard]] constexpr Nanoseconds at(Tsc tsc) const noexcept {
        const std::uint64_t delta = tsc.value > tsc_timestamp ? tsc.value - tsc_timestamp : 0;
        return {system_time + scale(delta, mul, shift)};
    }
};

inline constexpr std::uint32_t kMostRetries = 10'000;

/// Copies the page while its version is even and unchanged; false if that never happened within kMostRetries. `hook`
/// runs between the copy and the second look: a test plays hypervisor there.
template <class Hook>
[[nodiscard]] bool read(const volatile TimeInfo& page, Reading& out, Hook hook) noexcept {
    for (std::uint32_t retry = 0; retry <= kMostRetries; ++retry) {
        // Volatile loads stay in program order, and x86 does not reorder loads with loads: version, data, version.
        const std::uint32_t before = page.version;
        out.tsc_timestamp = page.tsc_timestamp;
        out.system_time = page.system_time;
        out.mul = page.tsc_to_system_mul;
        out.shift = page.tsc_shift;
        out.flags = page.flags;
        out.retries = retry;
        hook();
        if ((before & 1) == 0 && page.version == before)
            return true;
    }
    return false;
}
[[nodiscard]] inline bool read(const volatile TimeInfo& page, Reading& out) noexcept {
    return read(page, out, [] {});
}

/// Registers the page of this CPU with KVM, if KVM offers one. False: not offered, refused, or never written. Traps
/// must be up.
bool init_this_cpu() noexcept;

/// The frequency of the TSC as the hypervisor says it; 0 if it does not. After init_this_cpu() on the boot CPU.
struct Frequency {
    std::uint64_t khz = 0;
    const char* source = "";
};
[[nodiscard]] Frequency frequency() noexcept;

/// The page of a CPU, by KVM or Xen; nullptr if it has none.
[[nodiscard]] const volatile TimeInfo* page_of(CpuId cpu) noexcept;
/// True if the hypervisor has stopped this guest (debugger, migration, suspend) since the last call on this CPU.
[[nodiscard]] bool take_guest_stopped() noexcept;

} // namespace spinkick::paravirt::pvclock
