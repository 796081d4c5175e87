// SPDX-License-Identifier: BSD-2-Clause
//
// Entry of the Xen PV64 protocol: ring 3, long mode, paging on, RSI = virtual address of start_info, RSP = top of the boot
// stack page (Xen xen/include/public/arch-x86/xen.h, xen/xen.h). This kernel does not run as a PV guest yet: it says so in one
// line and asks Xen to power the domain off, so that a wrongly chosen guest type ends with a reason and not with a crash.
#include "boot/layout.h"

#define XEN_HYPERCALL_console_io 18
#define XEN_HYPERCALL_sched_op 29
#define CONSOLEIO_write 0
#define SCHEDOP_shutdown 2
#define SHUTDOWN_reboot 1

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

    .section .rodata
stub_text:
    .ascii "spinkick: boot: xen-pv\n"
    .ascii "spinkick: error: this image does not run as a Xen PV guest: start it as PVH (dom0=pvh, or type=\"pvh\")\n"
stub_text_end:
    .balign 8
shutdown_argument:
    .long SHUTDOWN_reboot

    .section .text.boot, "ax"
    .code64
    .globl xen_pv_entry
xen_pv_entry:
    movl $XEN_HYPERCALL_console_io, %eax
    movl $CONSOLEIO_write, %edi
    movl $(stub_text_end - stub_text), %esi
    movq $stub_text, %rdx
    syscall
    movl $XEN_HYPERCALL_sched_op, %eax
    movl $SCHEDOP_shutdown, %edi
    movq $shutdown_argument, %rsi
    syscall
    ud2
