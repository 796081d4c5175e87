// SPDX-License-Identifier: BSD-2-Clause
//
// The numbers that must never be mixed. A machine knows a CPU by three different numbers (dense index, APIC id, Xen
// vCPU id) and time by two (nanoseconds, TSC ticks); each is a type of its own, so that handing one to a function that
// wants another does not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace spinkick {

/// Dense index of a CPU in this kernel: 0 is the boot CPU, n-1 the last one that was found. Indexes arrays.
enum class CpuId : std::uint32_t {};
/// Local APIC id as the MADT and the ICR know it. Sparse; 32 bits in x2APIC mode. Never indexes anything.
enum class ApicId : std::uint32_t {};
/// vCPU number as Xen's VCPUOP_* and EVTCHNOP_* know it (CPUID base+4 EBX).
enum class XenVcpuId : std::uint32_t {};

[[nodiscard]] constexpr std::size_t index(CpuId cpu) noexcept { return static_cast<std::size_t>(cpu); }
[[nodiscard]] constexpr std::uint32_t raw(CpuId cpu) noexcept { return static_cast<std::uint32_t>(cpu); }
[[nodiscard]] constexpr std::uint32_t raw(ApicId id) noexcept { return static_cast<std::uint32_t>(id); }
[[nodiscard]] constexpr std::uint32_t raw(XenVcpuId id) noexcept { return static_cast<std::uint32_t>(id); }

/// A 64-bit amount of one unit. Sums and differences stay in the unit; a difference below zero is clamped to zero,
/// since the two ends of an interval may have been read on CPUs whose clocks differ.
template <class Unit>
struct Quantity {
    std::uint64_t value = 0;

    friend constexpr auto operator<=>(Quantity, Quantity) noexcept = default;
    friend constexpr Quantity operator+(Quantity a, Quantity b) noexcept { return {a.value + b.value}; }
    friend constexpr Quantity operator-(Quantity a, Quantity b) noexcept {
        return {a.value > b.value ? a.value - b.value : 0};
    }
};

/// Nanoseconds since the kernel's clock started, or a span of them.
using Nanoseconds = Quantity<struct NanosecondUnit>;
/// Ticks of the time stamp counter (RDTSC), absolute or a span.
using Tsc = Quantity<struct TscUnit>;

[[nodiscard]] constexpr Nanoseconds microseconds(std::uint64_t n) noexcept { return {n * 1'000}; }
[[nodiscard]] constexpr Nanoseconds milliseconds(std::uint64_t n) noexcept { return {n * 1'000'000}; }
[[nodiscard]] constexpr Nanoseconds seconds(std::uint64_t n) noexcept { return {n * 1'000'000'000}; }

/// Most CPUs this kernel starts; more are found, named and left alone.
inline constexpr std::uint32_t kMaxCpus = 256;

} // namespace spinkick
