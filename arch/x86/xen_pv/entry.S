// SPDX-License-Identifier: BSD-2-Clause
//
// How a PV guest enters and leaves its traps. Xen pushes RCX and R11 above the processor's frame: they are popped first, and then the
// frame is the one of arch/x86/entry.S, so that both machines share the dispatcher. The way back is the iret hypercall, which restores
// the event mask from RFLAGS.IF and looks for pending events in one step.

#define XEN_HYPERCALL_iret 23

    .text

.macro PV_STUB vector
    .balign 16
    popq %rcx
    popq %r11
    .if !(\vector == 8 || (\vector >= 10 && \vector <= 14) || \vector == 17 || \vector == 21)
    pushq $0
    .endif
    pushq $\vector
    jmp pv_trap_common
.endm

    .balign 16
    .globl xen_pv_trap_stubs
xen_pv_trap_stubs:
    .altmacro
    .set vector, 0
    .rept 32
    PV_STUB %vector
    .set vector, vector + 1
    .endr
    .noaltmacro

// Events arrive as the vector that HVM guests use for them (lapic::kVectorXenUpcall).
    .balign 16
    .globl xen_pv_event_callback
xen_pv_event_callback:
    popq %rcx
    popq %r11
    pushq $0
    pushq $0xe0
    jmp pv_trap_common

// Xen could not load a segment register that an iret asked for. This kernel changes none.
    .balign 16
    .globl xen_pv_failsafe_callback
xen_pv_failsafe_callback:
    ud2

pv_trap_common:
    pushq %rax
    pushq %rbx
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbp
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    cld
    movq %rsp, %rdi
    call trap_dispatch
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rbp
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rbx
    popq %rax
    addq $16, %rsp
    pushq $0                     // no VGCF_in_syscall: all of the frame counts
    pushq %rcx
    pushq %r11
    pushq %rax
    movl $XEN_HYPERCALL_iret, %eax
    syscall
    ud2

// A further vCPU starts here, on its own stack and the final tables, RDI = its CpuId.
    .globl xen_pv_ap_start
xen_pv_ap_start:
    xorl %ebp, %ebp
    call ap_entry
    ud2
