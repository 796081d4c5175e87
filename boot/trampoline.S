// SPDX-License-Identifier: BSD-2-Clause
//
// Where an application processor starts: real mode, CS:IP = page of the SIPI vector. This code is copied to a page below 1 MiB
// that the memory map calls usable (smp.cpp); it depends on no feature that only the boot path has checked, and its one
// variable, the page's own address, it takes from CS. It goes up through the boot tables, which map that page at its own
// address, and then finds its own entry by APIC id: all APs may run it at once.
#include "boot/layout.h"

#define OFFSET(symbol) ((symbol) - trampoline_begin)
#define PHYS(symbol) ((symbol) - KERNEL_BASE)

    .section .rodata
    .balign 16
    .globl trampoline_begin, trampoline_end, trampoline_page, trampoline_efer
    .code16
trampoline_begin:
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    lgdtl OFFSET(trampoline_gdt_pointer)
    movl %cr0, %eax
    orl $CR0_PE, %eax
    movl %eax, %cr0
    movl OFFSET(trampoline_page), %ebx
    ljmpl *OFFSET(trampoline_far_pointer)
    .code32
in_protected_mode:
    movl $SELECTOR_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl $CR4_PAE, %eax
    movl %eax, %cr4
    movl $PHYS(boot_pml4), %eax
    movl %eax, %cr3
    movl $MSR_IA32_EFER, %ecx
    rdmsr
    orl OFFSET(trampoline_efer)(%ebx), %eax
    wrmsr
    movl $(CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_PG), %eax
    movl %eax, %cr0
    ljmpl $SELECTOR_CODE64, $PHYS(ap_in_long_mode)
    .balign 8
trampoline_gdt_pointer:
    .short 31
    .globl trampoline_gdt_base
trampoline_gdt_base:
    .long 0                      // page + OFFSET(trampoline_gdt), filled in by the copier
trampoline_far_pointer:
    .globl trampoline_far_offset
trampoline_far_offset:
    .long OFFSET(in_protected_mode) // plus the page, filled in by the copier
    .short SELECTOR_CODE32
    .balign 8
trampoline_page:
    .long 0
trampoline_efer:
    .long 0
    .balign 8
    .globl trampoline_gdt
trampoline_gdt:
    .quad 0
    .quad 0x00af9b000000ffff
    .quad 0x00cf93000000ffff
    .quad 0x00cf9b000000ffff
trampoline_end:

    .section .text.boot, "ax"
    .code64
ap_in_long_mode:
    movabsq $ap_upper_half, %rax
    jmp *%rax
// Xen's VCPUOP_initialise enters here directly, in 64-bit mode on the boot tables.
    .globl ap_upper_half
ap_upper_half:
    lgdt ap_gdt_pointer
    movl $SELECTOR_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs

    cpuid                        // own APIC id: EDX of leaf 0xb where it has data, else leaf 1 EBX[31:24]
    cmpl $0xb, %eax
    jb 1f
    movl $0xb, %eax
    xorl %ecx, %ecx
    cpuid
    testl %ebx, %ebx
    jnz 2f
1:  movl $1, %eax
    cpuid
    shrl $24, %ebx
    movl %ebx, %edx

2:  movq $ap_entries, %rdi
    movl ap_entry_count, %ecx
3:  testl %ecx, %ecx
    jz 5f
    cmpl %edx, AP_ENTRY_APIC_ID(%rdi)
    je 4f
    addq $AP_ENTRY_BYTES, %rdi
    decl %ecx
    jmp 3b
4:  movq kernel_cr3, %rax        // the stacks are mapped by the kernel's own tables only
    movq %rax, %cr3
    movq AP_ENTRY_STACK(%rdi), %rsp
    movl AP_ENTRY_CPU(%rdi), %edi
    xorl %ebp, %ebp
    call ap_entry                // ap_entry(cpu); does not return
5:  cli                          // nobody's entry: the boot CPU names the one that it misses
    hlt
    jmp 5b

    .section .rodata
    .balign 8
ap_gdt_pointer:
    .short 31
    .quad boot_gdt
