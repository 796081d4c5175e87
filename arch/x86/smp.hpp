// SPDX-License-Identifier: BSD-2-Clause
//
// Bringing up the application processors and giving them work (Intel SDM 3A 8.4; INIT-SIPI to all at once, one retry,
// then the run goes on without the missing ones, by name).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "boot/layout.h"
#include "kernel/machine.hpp"
#include "kernel/types.hpp"

namespace spinkick::x86::smp {

/// One row of the table that trampoline.S searches by APIC id.
struct ApEntry {
    std::uint32_t apic_id;
    std::uint32_t cpu;
    std::uint64_t stack_top;
    std::uint32_t arrived; ///< ArrivalState, through std::atomic_ref
    std::uint32_t reserved;
};
static_assert(sizeof(ApEntry) == AP_ENTRY_BYTES && offsetof(ApEntry, apic_id) == AP_ENTRY_APIC_ID &&
              offsetof(ApEntry, cpu) == AP_ENTRY_CPU && offsetof(ApEntry, stack_top) == AP_ENTRY_STACK &&
              offsetof(ApEntry, arrived) == AP_ENTRY_ARRIVED);

/// Whether an AP may still come. One that comes while it must not parks, until an INIT: when it was given up, the run
/// has begun without it; while it is held, an INIT is on its way to it.
enum class ArrivalState : std::uint32_t { awaited, arrived, held, given_up };

/// What a bring-up came to.
struct BringUp {
    std::uint32_t found = 1; ///< CPUs that the machine's tables offer, the boot CPU included
    std::uint32_t online = 1;
    std::uint32_t retried = 0; ///< APs that were started more than once
    std::uint32_t missing = 0; ///< APs that did not come
    Nanoseconds elapsed{};     ///< first INIT to last AP online
    std::array<ApicId, 8> missing_ids{};
};

/// Gives the boot CPU its per-CPU block; before anything else uses GS.
void init_boot_cpu_block() noexcept;
/// Takes stacks and blocks from `arena`, a physical range of usable memory, for CPU 0 and for as many of `ids` as fit;
/// maps them with guard pages. Returns how many CPUs have room.
[[nodiscard]] std::uint32_t place_cpus(std::span<const ApicId> ids, std::uint64_t arena,
                                       std::uint64_t arena_bytes) noexcept;
/// Bytes of physical memory one CPU takes from the arena.
[[nodiscard]] std::uint64_t bytes_per_cpu() noexcept;
/// Memory for whatever runs on a CPU, for measurements: taken from the arena, so that the image stays small.
[[nodiscard]] std::span<std::byte> scratch_of(CpuId cpu) noexcept;
/// Top of a CPU's main stack (mapped).
[[nodiscard]] std::uint64_t stack_top_of(CpuId cpu) noexcept;
/// Loads descriptors with the arena's stacks on the boot CPU.
void finish_boot_cpu() noexcept;

/// How an AP is made to run: INIT and SIPI by the local APIC, or a hypervisor's call. Returns false if it could not
/// even be asked.
using StartMethod = bool (*)(CpuId cpu, ApicId id) noexcept;

/// Starts CPUs 1..count-1 and waits for them, bounded. `trampoline_page` is a free page below 1 MiB; 0 if there is
/// none, then only `start` can work. `drop_starts` SIPIs, or calls, to the last CPU are left out, from the first on.
[[nodiscard]] BringUp start_all(std::uint32_t count, std::uint64_t trampoline_page, StartMethod start,
                                std::uint32_t drop_starts) noexcept;

[[nodiscard]] std::uint32_t online_count() noexcept;
/// CPUs that have a block, online or not.
[[nodiscard]] std::uint32_t placed_count() noexcept;
/// The nth online CPU.
[[nodiscard]] CpuId online_cpu(std::uint32_t n) noexcept;

} // namespace spinkick::x86::smp
