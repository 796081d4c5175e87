// SPDX-License-Identifier: BSD-2-Clause
//
// Entry of the Xen PV64 protocol: ring 3, long mode, paging on, RSI = virtual address of start_info (Xen xen/include/public/xen.h,
// arch-x86/xen.h). Events are masked on all vCPUs.
#include "boot/layout.h"

.macro XEN_STRING_NOTE type, text
    .balign 4
    .long 4, 5001f - 5000f, \type
    .asciz "Xen"
5000:
    .asciz "\text"
5001:
    .balign 4
.endm

.macro XEN_VALUE_NOTE type, value
    .balign 4
    .long 4, 8, \type
    .asciz "Xen"
    .quad \value
.endm

    .section .note.Xen, "a", @note
    XEN_STRING_NOTE 6, "spinkick"     // GUEST_OS
    XEN_STRING_NOTE 5, "xen-3.0"      // XEN_VERSION
    XEN_STRING_NOTE 8, "generic"      // LOADER
    XEN_VALUE_NOTE 3, KERNEL_BASE     // VIRT_BASE
    XEN_VALUE_NOTE 1, xen_pv_entry    // ENTRY

    .section .text.boot, "ax"
    .code64
    .globl xen_pv_entry
xen_pv_entry:
    cld
    movq $boot_stack_top, %rsp
    movl $BOOT_PROTOCOL_XEN_PV, %edi
    xorl %ebp, %ebp
    call kernel_entry                 // kernel_entry(protocol, start_info); does not return
    ud2
