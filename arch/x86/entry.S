// SPDX-License-Identifier: BSD-2-Clause
//
// The first and last instructions of every exception and interrupt, the one place that halts with interrupts on, and the way
// out of a test body that a watchdog has given up on. The frame is struct TrapFrame (traps.hpp).

    // A section of its own: between trap_entry_begin and trap_entry_end a trap has begun and interrupts are off.
    .section .text.trap_entry, "ax", @progbits

.macro STUB vector
    .balign 16
    // Vectors whose exception pushes an error code itself (Intel SDM 3A table 6-1; AMD APM 2 8.2 for 29, 30).
    .if !(\vector == 8 || (\vector >= 10 && \vector <= 14) || \vector == 17 || \vector == 21 || \vector == 29 || \vector == 30)
    pushq $0
    .endif
    pushq $\vector
    jmp trap_common
.endm

    .balign 16
    .globl trap_stubs
trap_stubs:
    .altmacro
    .set vector, 0
    .rept 256
    STUB %vector
    .set vector, vector + 1
    .endr
    .noaltmacro

trap_common:
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
    iretq

    .text
    .balign 16
    .globl sti_hlt, sti_hlt_at_hlt
sti_hlt:
    sti
sti_hlt_at_hlt:
    hlt
    ret

// bool run_rescuable(void (*fn)(void*), void* argument, RescueContext* context)
// Calls fn(argument) and returns true; returns false if the NMI handler sent this CPU to rescue_landing meanwhile, which finds
// the context in RDI and undoes fn's stack as a whole.
    .balign 16
    .globl run_rescuable
run_rescuable:
    pushq %rbp
    movq %rsp, %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    pushq %rdx
    movq %rsp, 0(%rdx)           // RescueContext::rsp
    movq $1, 8(%rdx)             // RescueContext::armed
    movq %rdi, %rax
    movq %rsi, %rdi
    call *%rax
    movl $1, %eax
1:  popq %rdx
    movq $0, 8(%rdx)
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .globl rescue_landing
rescue_landing:
    movq 0(%rdi), %rsp
    xorl %eax, %eax
    jmp 1b
