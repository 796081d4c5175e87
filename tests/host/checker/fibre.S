// SPDX-License-Identifier: BSD-2-Clause
//
// void spinkick_switch_stack(void** save, void* load): see fibre.hpp.
        .text
        .globl  spinkick_switch_stack
        .type   spinkick_switch_stack, @function
spinkick_switch_stack:
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsp, (%rdi)
        mov     %rsi, %rsp
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbx
        pop     %rbp
        ret
        .size   spinkick_switch_stack, . - spinkick_switch_stack
        .section .note.GNU-stack, "", @progbits
