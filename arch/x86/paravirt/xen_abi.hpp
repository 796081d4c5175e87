// SPDX-License-Identifier: BSD-2-Clause
//
// What Xen and its 64-bit HVM and PVH guests agree on (Xen xen/include/public/{xen,memory,vcpu,sched,event_channel}.h,
// public/hvm/hvm_vcpu.h; layouts checked against the headers of Xen 4.17). Pointers in arguments are guest virtual
// addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arch/x86/paravirt/pvclock_abi.hpp"

namespace spinkick::paravirt::xen_abi {

/// Numbers in RAX.
enum class Hypercall : std::uint64_t {
    set_trap_table = 0, ///< PV guests only, as mmu_update, mmuext_op, update_va_mapping, set_segment_base, callback_op
    mmu_update = 1,
    memory_op = 12,
    update_va_mapping = 14,
    xen_version = 17,
    console_io = 18,
    vm_assist = 21,
    vcpu_op = 24,
    set_segment_base = 25,
    mmuext_op = 26,
    sched_op = 29,
    callback_op = 30,
    event_channel_op = 32,
    physdev_op = 33,
    hvm_op = 34,
};

inline constexpr std::uint16_t DOMID_SELF = 0x7ff0;

// Negative results.
inline constexpr std::int64_t XEN_ENOENT = 2;
inline constexpr std::int64_t XEN_EFAULT = 14;
inline constexpr std::int64_t XEN_EINVAL = 22;
inline constexpr std::int64_t XEN_ENOSYS = 38;

// console_io(command, count, pointer)
inline constexpr std::uint64_t CONSOLEIO_write = 0;
inline constexpr std::uint64_t CONSOLEIO_read = 1;

// memory_op(command, pointer)
inline constexpr std::uint64_t XENMEM_add_to_physmap = 7;
inline constexpr std::uint64_t XENMEM_memory_map = 9;

struct xen_add_to_physmap {
    std::uint16_t domid;
    std::uint16_t size;
    std::uint32_t space;
    std::uint64_t idx;
    std::uint64_t gpfn;
};
static_assert(std::is_standard_layout_v<xen_add_to_physmap> && sizeof(xen_add_to_physmap) == 24);
static_assert(offsetof(xen_add_to_physmap, space) == 4 && offsetof(xen_add_to_physmap, gpfn) == 16);
inline constexpr std::uint32_t XENMAPSPACE_shared_info = 0;

struct xen_memory_map {
    std::uint32_t nr_entries; ///< in: room, out: entries written
    std::uint32_t pad;
    std::uint64_t buffer;
};
static_assert(std::is_standard_layout_v<xen_memory_map> && sizeof(xen_memory_map) == 16 &&
              offsetof(xen_memory_map, buffer) == 8);

/// A record as BIOS function E820 gives it, without padding.
struct [[gnu::packed]] e820entry {
    std::uint64_t addr;
    std::uint64_t size;
    std::uint32_t type;
};
static_assert(sizeof(e820entry) == 20);

// vm_assist(command, type)
inline constexpr std::uint64_t VMASST_CMD_enable = 0;
inline constexpr std::uint64_t VMASST_TYPE_runstate_update_flag = 5;

// vcpu_op(command, vCPU id, pointer)
inline constexpr std::uint64_t VCPUOP_initialise = 0;
inline constexpr std::uint64_t VCPUOP_up = 1;
inline constexpr std::uint64_t VCPUOP_is_up = 3;
inline constexpr std::uint64_t VCPUOP_register_runstate_memory_area = 5;
inline constexpr std::uint64_t VCPUOP_stop_periodic_timer = 7;
inline constexpr std::uint64_t VCPUOP_set_singleshot_timer = 8;
inline constexpr std::uint64_t VCPUOP_stop_singleshot_timer = 9;
inline constexpr std::uint64_t VCPUOP_send_nmi = 11;
inline constexpr std::uint64_t VCPUOP_register_vcpu_info = 10;

struct vcpu_register_vcpu_info {
    std::uint64_t mfn; ///< guest frame number here
    std::uint32_t offset;
    std::uint32_t rsvd;
};
static_assert(std::is_standard_layout_v<vcpu_register_vcpu_info> && sizeof(vcpu_register_vcpu_info) == 16);

struct vcpu_register_runstate_memory_area {
    std::uint64_t address; ///< virtual, looked up in the page tables in force whenever Xen writes
};
static_assert(sizeof(vcpu_register_runstate_memory_area) == 8);

struct vcpu_runstate_info {
    std::int32_t state;
    std::uint32_t pad;
    std::uint64_t state_entry_time; ///< nanoseconds; bit 63 while Xen writes, if VMASST_TYPE_runstate_update_flag is on
    std::uint64_t time[4];          ///< nanoseconds in each state
};
static_assert(std::is_standard_layout_v<vcpu_runstate_info> && sizeof(vcpu_runstate_info) == 48);
static_assert(offsetof(vcpu_runstate_info, state_entry_time) == 8 && offsetof(vcpu_runstate_info, time) == 16);
inline constexpr std::int32_t RUNSTATE_running = 0;
inline constexpr std::int32_t RUNSTATE_runnable = 1;
inline constexpr std::int32_t RUNSTATE_blocked = 2;
inline constexpr std::int32_t RUNSTATE_offline = 3;
inline constexpr std::uint64_t XEN_RUNSTATE_UPDATE = 1ull << 63;

/// What VCPUOP_initialise takes from an HVM or PVH guest; here the 64-bit half of the union only. Segments are flat.
struct vcpu_hvm_x86_64 {
    std::uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, rip, rflags, cr0, cr3, cr4, efer;
};
struct vcpu_hvm_context {
    std::uint32_t mode;
    std::uint32_t pad;
    vcpu_hvm_x86_64 x86_64;
    std::uint64_t rest_of_the_32_bit_form;
};
static_assert(std::is_standard_layout_v<vcpu_hvm_context> && sizeof(vcpu_hvm_context) == 128);
static_assert(offsetof(vcpu_hvm_context, x86_64) == 8 && offsetof(vcpu_hvm_x86_64, rip) == 64 &&
              offsetof(vcpu_hvm_x86_64, cr0) == 80 && offsetof(vcpu_hvm_x86_64, efer) == 104);
inline constexpr std::uint32_t VCPU_HVM_MODE_64B = 1;

// hvm_op(command, pointer): HVM and PVH guests only
inline constexpr std::uint64_t HVMOP_set_param = 0;
inline constexpr std::uint64_t HVMOP_get_param = 1;
inline constexpr std::uint64_t HVMOP_set_evtchn_upcall_vector = 23;

struct xen_hvm_param {
    std::uint16_t domid;
    std::uint16_t pad;
    std::uint32_t index;
    std::uint64_t value; ///< out of HVMOP_get_param
};
static_assert(std::is_standard_layout_v<xen_hvm_param> && sizeof(xen_hvm_param) == 16 &&
              offsetof(xen_hvm_param, index) == 4 && offsetof(xen_hvm_param, value) == 8);
inline constexpr std::uint32_t HVM_PARAM_CALLBACK_IRQ = 0; ///< 2 << 56 | vector
inline constexpr std::uint32_t HVM_PARAM_CONSOLE_PFN = 17;
inline constexpr std::uint32_t HVM_PARAM_CONSOLE_EVTCHN = 18;

struct xen_hvm_evtchn_upcall_vector {
    std::uint32_t vcpu;
    std::uint8_t vector; ///< from 0x10 on
    std::uint8_t pad[3];
};
static_assert(std::is_standard_layout_v<xen_hvm_evtchn_upcall_vector> && sizeof(xen_hvm_evtchn_upcall_vector) == 8 &&
              offsetof(xen_hvm_evtchn_upcall_vector, vector) == 4);

/// Flags of hvm_start_info (PVH) and of start_info (PV).
inline constexpr std::uint32_t SIF_INITDOMAIN = 1 << 1; ///< this is dom0

// sched_op(command, pointer)
inline constexpr std::uint64_t SCHEDOP_yield = 0;
inline constexpr std::uint64_t SCHEDOP_block = 1;
inline constexpr std::uint64_t SCHEDOP_shutdown = 2;
inline constexpr std::uint64_t SCHEDOP_poll = 3;

struct sched_shutdown {
    std::uint32_t reason;
};
inline constexpr std::uint32_t SHUTDOWN_poweroff = 0;
inline constexpr std::uint32_t SHUTDOWN_reboot = 1;
inline constexpr std::uint32_t SHUTDOWN_crash = 3;

struct sched_poll {
    std::uint64_t ports; ///< virtual address of 32-bit port numbers
    std::uint32_t nr_ports;
    std::uint32_t pad;
    std::uint64_t timeout; ///< absolute system time in nanoseconds; 0 for none
};
static_assert(std::is_standard_layout_v<sched_poll> && sizeof(sched_poll) == 24);
static_assert(offsetof(sched_poll, nr_ports) == 8 && offsetof(sched_poll, timeout) == 16);

// event_channel_op(command, pointer)
inline constexpr std::uint64_t EVTCHNOP_bind_interdomain = 0;
inline constexpr std::uint64_t EVTCHNOP_bind_virq = 1;
inline constexpr std::uint64_t EVTCHNOP_close = 3;
inline constexpr std::uint64_t EVTCHNOP_send = 4;
inline constexpr std::uint64_t EVTCHNOP_alloc_unbound = 6;
inline constexpr std::uint64_t EVTCHNOP_bind_ipi = 7;
inline constexpr std::uint64_t EVTCHNOP_bind_vcpu = 8;
inline constexpr std::uint64_t EVTCHNOP_unmask = 9;
inline constexpr std::uint64_t EVTCHNOP_init_control = 11;
inline constexpr std::uint64_t EVTCHNOP_expand_array = 12;

struct evtchn_bind_interdomain {
    std::uint16_t remote_dom;
    std::uint16_t pad;
    std::uint32_t remote_port;
    std::uint32_t local_port; ///< out
};
static_assert(sizeof(evtchn_bind_interdomain) == 12 && offsetof(evtchn_bind_interdomain, remote_port) == 4);
struct evtchn_alloc_unbound {
    std::uint16_t dom;
    std::uint16_t remote_dom;
    std::uint32_t port; ///< out
};
static_assert(sizeof(evtchn_alloc_unbound) == 8);
struct evtchn_bind_vcpu {
    std::uint32_t port;
    std::uint32_t vcpu;
};
static_assert(sizeof(evtchn_bind_vcpu) == 8);

struct evtchn_bind_ipi {
    std::uint32_t vcpu;
    std::uint32_t port; ///< out
};
static_assert(sizeof(evtchn_bind_ipi) == 8);
struct evtchn_port {
    std::uint32_t port;
};
static_assert(sizeof(evtchn_port) == 4);

// FIFO event channels (public/event_channel.h)
inline constexpr std::uint32_t EVTCHN_FIFO_PENDING = 1u << 31;
inline constexpr std::uint32_t EVTCHN_FIFO_MASKED = 1u << 30;
inline constexpr std::uint32_t EVTCHN_FIFO_LINKED = 1u << 29;
inline constexpr std::uint32_t EVTCHN_FIFO_LINK_MASK = (1u << 17) - 1;
inline constexpr std::uint32_t EVTCHN_FIFO_MAX_QUEUES = 16;
inline constexpr std::uint32_t EVTCHN_FIFO_PRIORITY_DEFAULT = 7; ///< 0 is the highest

struct evtchn_fifo_control_block {
    std::uint32_t ready; ///< a bit for each queue that has become non-empty
    std::uint32_t rsvd;
    std::uint32_t head[EVTCHN_FIFO_MAX_QUEUES];
};
static_assert(std::is_standard_layout_v<evtchn_fifo_control_block> && sizeof(evtchn_fifo_control_block) == 72 &&
              offsetof(evtchn_fifo_control_block, head) == 8);
struct evtchn_init_control {
    std::uint64_t control_gfn; ///< a machine frame in a PV guest
    std::uint32_t offset;
    std::uint32_t vcpu;
    std::uint8_t link_bits; ///< out
    std::uint8_t pad[7];
};
static_assert(std::is_standard_layout_v<evtchn_init_control> && sizeof(evtchn_init_control) == 24 &&
              offsetof(evtchn_init_control, link_bits) == 16);
struct evtchn_expand_array {
    std::uint64_t array_gfn;
};
static_assert(sizeof(evtchn_expand_array) == 8);

/// 64 bytes for each vCPU. Beyond the 32nd, or by choice, it lives where VCPUOP_register_vcpu_info puts it.
struct vcpu_info {
    std::uint8_t evtchn_upcall_pending;
    std::uint8_t evtchn_upcall_mask;
    std::uint8_t pad0[6];
    std::uint64_t evtchn_pending_sel;
    std::uint64_t cr2;
    std::uint64_t pad2;
    pvclock_abi::pvclock_vcpu_time_info time;
};
static_assert(std::is_standard_layout_v<vcpu_info> && sizeof(vcpu_info) == 64);
static_assert(offsetof(vcpu_info, evtchn_upcall_mask) == 1 && offsetof(vcpu_info, evtchn_pending_sel) == 8 &&
              offsetof(vcpu_info, time) == 32);

inline constexpr std::uint32_t kLegacyVcpus = 32;
inline constexpr std::uint32_t kPorts = 4096; ///< of the two-level interface

/// The page that XENMEM_add_to_physmap puts into the guest.
struct shared_info {
    struct vcpu_info vcpu_info[kLegacyVcpus];
    std::uint64_t evtchn_pending[64];
    std::uint64_t evtchn_mask[64];
    std::uint32_t wc_version, wc_sec, wc_nsec, wc_sec_hi;
    std::uint64_t arch[6];
};
static_assert(std::is_standard_layout_v<shared_info> && sizeof(shared_info) == 3136);
static_assert(offsetof(shared_info, evtchn_pending) == 2048 && offsetof(shared_info, evtchn_mask) == 2560 &&
              offsetof(shared_info, arch) == 3088);

} // namespace spinkick::paravirt::xen_abi
