// SPDX-License-Identifier: BSD-2-Clause
//
// A 64-bit Xen PV guest as a machine: ring 3, an event mask instead of IF, page tables of machine frames that only Xen
// writes, no local APIC. The rest of arch/x86 asks `is_active()` at its seams (interrupt mask, halt, IPIs, timer, AP
// start, page tables, traps, CPUID) and comes here; nothing above arch/x86 knows (Xen xen/include/public/xen.h,
// public/arch-x86/xen-x86_64.h).
#pragma once

#include <cstdint>

#include "arch/x86/paravirt/xen_abi.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/xen_pv/active.hpp"
#include "boot/boot_info.hpp"
#include "kernel/text.hpp"
#include "kernel/types.hpp"

namespace spinkick::x86::xen_pv {

/// First steps of the boot CPU: GS base, traps, callbacks, the shared page. `start_info` is its virtual address.
void begin(std::uint64_t start_info) noexcept;

/// Sets the GS base of this CPU.
void set_gs_base(const void* block) noexcept;
/// The seat of the calling CPU's event mask changed to its own vcpu_info; after VCPUOP_register_vcpu_info.
void use_vcpu_info(CpuId cpu, paravirt::xen_abi::vcpu_info* info) noexcept;
/// The page that all vCPUs share with Xen.
[[nodiscard]] paravirt::xen_abi::shared_info* shared_info() noexcept;

// --- interrupt mask: vcpu_info's byte ---
[[nodiscard]] bool interrupts_enabled() noexcept;
[[nodiscard]] bool upcall_pending() noexcept;
void mask_interrupts() noexcept;
/// Clears the mask and takes what has come meanwhile.
void unmask_interrupts() noexcept;
/// SCHEDOP_block: unmasks and sleeps in one step; returns with interrupts on.
void block() noexcept;
/// Sleeps with interrupts masked, on nothing that ever comes; an NMI gets in.
void sleep_masked() noexcept;

// --- traps ---
void load_traps_this_cpu() noexcept;

// --- IPIs by event channels; each CPU binds its own ---
void bind_this_cpu() noexcept;
void send_vector(CpuId cpu, std::uint8_t vector) noexcept;
void send_nmi(CpuId cpu) noexcept;
/// kVectorTimer on this CPU every `period`; {0} stops it.
void set_periodic_timer(Nanoseconds period) noexcept;

/// Makes the next upcall look at all ports of this CPU: for one that was thrown out in the middle of an upcall.
void look_again() noexcept;

// --- start of other vCPUs ---
/// vCPUs that the domain has: those for which VCPUOP_is_up knows an answer.
[[nodiscard]] std::uint32_t count_vcpus() noexcept;
[[nodiscard]] bool start_cpu(CpuId cpu, std::uint64_t stack_top, void* percpu_block) noexcept;

// --- what the start info says, `start_info` being its virtual address ---
/// True in a dom0.
[[nodiscard]] bool is_initial_domain(std::uint64_t start_info) noexcept;
/// The console ring of a domU, where Xen has mapped it.
struct ConsolePlace {
    void* page = nullptr;
    std::uint32_t port = 0;
    FixedText<120> lack; ///< why there is none; empty if there is one
};
[[nodiscard]] ConsolePlace console_place(std::uint64_t start_info) noexcept;

// --- memory ---
/// Memory map, command line and modules out of the start_info.
void read_start_info(std::uint64_t start_info, boot::BootInfo& info) noexcept;
/// Takes the write and execute permissions of the image's pages in hand.
void protect_image() noexcept;
/// The level 1 entry that maps the frame `physical` (guest-physical, not machine) with these permission bits.
[[nodiscard]] bool map_page(std::uint64_t virtual_address, std::uint64_t physical, std::uint64_t permissions) noexcept;
/// The same for a machine frame that is not this guest's memory (shared page, console ring).
[[nodiscard]] bool map_machine_page(std::uint64_t virtual_address, std::uint64_t machine,
                                    std::uint64_t permissions) noexcept;
/// Takes a page's mapping away; this vCPU forgets it.
void unmap_page(std::uint64_t virtual_address) noexcept;
/// This vCPU forgets its translation of a page.
void flush_page(std::uint64_t virtual_address) noexcept;
[[nodiscard]] std::uint64_t entry_of(std::uint64_t virtual_address) noexcept;
/// Machine address of the level 4 table.
[[nodiscard]] std::uint64_t kernel_root_machine() noexcept;
/// Machine address of an object in the image.
[[nodiscard]] std::uint64_t machine_of_image(const void* object) noexcept;

/// Ends the domain as crashed.
[[noreturn]] void crash() noexcept;

} // namespace spinkick::x86::xen_pv
