// SPDX-License-Identifier: BSD-2-Clause
//
// What only 64-bit PV guests and Xen agree on (Xen xen/include/public/xen.h, public/arch-x86/xen.h, xen-x86_64.h,
// callback.h, vcpu.h; layouts of 4.17).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace spinkick::x86::xen_pv::abi {

/// Flat segments that Xen's own GDT offers to a 64-bit guest.
inline constexpr std::uint16_t FLAT_KERNEL_CS = 0xe033;
inline constexpr std::uint16_t FLAT_KERNEL_SS = 0xe02b;

/// What RSI points to at the entry.
struct start_info {
    char magic[32]; ///< "xen-3.0-x86_64"
    std::uint64_t nr_pages;
    std::uint64_t shared_info; ///< machine address
    std::uint32_t flags;
    std::uint32_t pad0;
    std::uint64_t store_mfn;
    std::uint32_t store_evtchn;
    std::uint32_t pad1;
    std::uint64_t console_mfn; ///< domU
    std::uint32_t console_evtchn;
    std::uint32_t pad2;
    std::uint64_t pt_base; ///< virtual address of the first page table
    std::uint64_t nr_pt_frames;
    std::uint64_t mfn_list; ///< virtual address of the table guest frame -> machine frame
    std::uint64_t mod_start;
    std::uint64_t mod_len;
    char cmd_line[1024];
    std::uint64_t first_p2m_pfn;
    std::uint64_t nr_p2m_frames;
};
static_assert(std::is_standard_layout_v<start_info> && sizeof(start_info) == 1168);
static_assert(offsetof(start_info, nr_pages) == 32 && offsetof(start_info, flags) == 48 &&
              offsetof(start_info, console_mfn) == 72 && offsetof(start_info, pt_base) == 88 &&
              offsetof(start_info, mfn_list) == 104 && offsetof(start_info, cmd_line) == 128 &&
              offsetof(start_info, first_p2m_pfn) == 1152);

struct trap_info {
    std::uint8_t vector;
    std::uint8_t flags; ///< bits 1:0 DPL, bit 2: mask events on entry
    std::uint16_t cs;
    std::uint32_t pad;
    std::uint64_t address; ///< 0 ends the table
};
static_assert(std::is_standard_layout_v<trap_info> && sizeof(trap_info) == 16 && offsetof(trap_info, address) == 8);
inline constexpr std::uint8_t kTrapMasksEvents = 1 << 2;

struct callback_register {
    std::uint16_t type;
    std::uint16_t flags;
    std::uint32_t pad;
    std::uint64_t address;
};
static_assert(sizeof(callback_register) == 16);
inline constexpr std::uint64_t CALLBACKOP_register = 0;
inline constexpr std::uint16_t CALLBACKTYPE_event = 0, CALLBACKTYPE_failsafe = 1, CALLBACKTYPE_nmi = 4;

struct mmu_update {
    std::uint64_t ptr; ///< machine address of the entry, command in bits 1:0
    std::uint64_t val;
};
static_assert(sizeof(mmu_update) == 16);
// mmuext_op(operations, count, pointer to how many were done or nothing, domain)
inline constexpr std::uint32_t MMUEXT_INVLPG_LOCAL = 7;
struct mmuext_op {
    std::uint32_t cmd;
    std::uint32_t pad;
    std::uint64_t arg1; ///< of MMUEXT_INVLPG_LOCAL: the virtual address
    std::uint64_t arg2;
};
static_assert(sizeof(mmuext_op) == 24 && offsetof(mmuext_op, arg1) == 8);
inline constexpr std::uint64_t UVMF_INVLPG_LOCAL = 2;
inline constexpr std::uint64_t UVMF_INVLPG_ALL = 2 | 4;

inline constexpr std::uint64_t SEGBASE_GS_KERNEL = 2;

/// Without it every IN and OUT of the kernel is a #GP; with it Xen decides port by port.
inline constexpr std::uint64_t PHYSDEVOP_set_iopl = 6;
struct physdev_set_iopl {
    std::uint32_t iopl;
};

/// VCPUOP_initialise of a PV guest.
struct cpu_user_regs {
    std::uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
    std::uint32_t error_code, entry_vector;
    std::uint64_t rip;
    std::uint16_t cs, pad0;
    std::uint8_t saved_upcall_mask, pad1[3];
    std::uint64_t rflags, rsp;
    std::uint16_t ss, pad2[3], es, pad3[3], ds, pad4[3], fs, pad5[3], gs, pad6[3];
};
static_assert(std::is_standard_layout_v<cpu_user_regs> && sizeof(cpu_user_regs) == 200);
static_assert(offsetof(cpu_user_regs, rdi) == 112 && offsetof(cpu_user_regs, rip) == 128 &&
              offsetof(cpu_user_regs, rsp) == 152 && offsetof(cpu_user_regs, ss) == 160 &&
              offsetof(cpu_user_regs, ds) == 176);

struct vcpu_guest_context {
    std::uint8_t fpu[512];
    std::uint64_t flags;
    cpu_user_regs user_regs;
    trap_info trap_ctxt[256];
    std::uint64_t ldt_base, ldt_ents;
    std::uint64_t gdt_frames[16], gdt_ents;
    std::uint64_t kernel_ss, kernel_sp;
    std::uint64_t ctrlreg[8];
    std::uint64_t debugreg[8];
    std::uint64_t event_callback_eip, failsafe_callback_eip, syscall_callback_eip;
    std::uint64_t vm_assist;
    std::uint64_t fs_base, gs_base_kernel, gs_base_user;
};
static_assert(std::is_standard_layout_v<vcpu_guest_context> && sizeof(vcpu_guest_context) == 5168);
static_assert(offsetof(vcpu_guest_context, user_regs) == 520 && offsetof(vcpu_guest_context, trap_ctxt) == 720 &&
              offsetof(vcpu_guest_context, kernel_ss) == 4968 && offsetof(vcpu_guest_context, ctrlreg) == 4984 &&
              offsetof(vcpu_guest_context, event_callback_eip) == 5112 &&
              offsetof(vcpu_guest_context, gs_base_kernel) == 5152);
inline constexpr std::uint64_t VGCF_in_kernel = 1 << 2;

struct vcpu_set_singleshot_timer {
    std::uint64_t timeout_abs_ns;
    std::uint32_t flags;
    std::uint32_t pad;
};
static_assert(sizeof(vcpu_set_singleshot_timer) == 16);

struct evtchn_bind_virq {
    std::uint32_t virq;
    std::uint32_t vcpu;
    std::uint32_t port; ///< out
};
static_assert(sizeof(evtchn_bind_virq) == 12);
inline constexpr std::uint32_t VIRQ_TIMER = 0;

/// Machine frame -> guest frame, mapped read-only by Xen.
inline constexpr std::uint64_t kMachineToPhysical = 0xffff800000000000;
inline constexpr std::uint64_t kMachineToPhysicalEntries = (256ull << 30) / 8;

} // namespace spinkick::x86::xen_pv::abi
