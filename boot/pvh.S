// SPDX-License-Identifier: BSD-2-Clause
//
// Entry of the PVH protocol: QEMU -kernel, Xen PVH, Firecracker, Cloud Hypervisor.
// 32-bit protected mode, paging off, EBX = physical address of hvm_start_info, no stack (Xen docs/misc/pvh.pandoc).
// EAX is not looked at: qboot leaves multiboot's magic there.
#include "boot/layout.h"

// Note 18, XEN_ELFNOTE_PHYS32_ENTRY. Loaders match the type and some the name; the PT_NOTE segment has alignment 4.
    .section .note.Xen, "a", @note
    .balign 4
    .long 4, 4, 18
    .asciz "Xen"
    .long pvh_entry - KERNEL_BASE

    .section .text.boot, "ax"
    .code32
    .globl pvh_entry
pvh_entry:
    movl %ebx, %esi
    movl $BOOT_PROTOCOL_PVH, %edi
    jmp enter_long_mode
