// SPDX-License-Identifier: BSD-2-Clause
//
// From 32-bit protected mode without paging to C++ in the upper half. EDI = protocol, ESI = physical address of the
// loader's information. The tables built here map the low 4 GiB twice over: at 0, so that the switch itself and the reading
// of loader data work, and the first 2 GiB at KERNEL_BASE. They are writable and executable; arch/x86/paging replaces them
// within the first few steps of main. Application processors pass through them once more on their way up.
#include "boot/layout.h"

#define PHYS(symbol) ((symbol) - KERNEL_BASE)
#define PTE_PRESENT_WRITE 0x03
#define PTE_PRESENT_WRITE_LARGE 0x83

    .section .bss.page_aligned, "aw", @nobits
    .balign 4096
    .globl boot_pml4
boot_pml4:      .skip 4096
boot_pdpt_low:  .skip 4096
boot_pdpt_high: .skip 4096
boot_pd:        .skip 4 * 4096
    .globl boot_stack_guard, boot_stack
boot_stack_guard: .skip 4096     // not mapped by the final tables: the boot CPU stays on this stack
boot_stack:     .skip BOOT_STACK_BYTES
    .globl boot_stack_top
boot_stack_top:

    .section .rodata
    .balign 8
    .globl boot_gdt
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff   // SELECTOR_CODE64
    .quad 0x00cf93000000ffff   // SELECTOR_DATA
    .quad 0x00cf9b000000ffff   // SELECTOR_CODE32
boot_gdt_end:
boot_gdt_pointer32:
    .short boot_gdt_end - boot_gdt - 1
    .long PHYS(boot_gdt)
no_long_mode_text:
    .asciz "spinkick: error: this CPU has no long mode (CPUID 0x80000001 EDX bit 29): choose a 64-bit CPU model\n"

    .section .text.boot, "ax"
    .code32
    .globl enter_long_mode
enter_long_mode:
    cli
    cld
    movl $PHYS(boot_stack_top), %esp
    movl %edi, %ebp              // CPUID takes EBX, ECX, EDX; protocol and information stay in EBP and ESI

    movl $0x80000000, %eax
    cpuid
    cmpl $0x80000001, %eax
    jb no_long_mode
    movl $0x80000001, %eax
    cpuid
    testl $(1 << 29), %edx
    jz no_long_mode
    movl %edx, %edi              // bit 20 says whether EFER.NXE may be set

    movl $(PHYS(boot_pdpt_low) + PTE_PRESENT_WRITE), PHYS(boot_pml4)
    movl $(PHYS(boot_pdpt_high) + PTE_PRESENT_WRITE), PHYS(boot_pml4) + 511 * 8
    movl $(PHYS(boot_pd) + PTE_PRESENT_WRITE), %eax
    movl %eax, PHYS(boot_pdpt_low)
    movl %eax, PHYS(boot_pdpt_high) + 510 * 8
    addl $4096, %eax
    movl %eax, PHYS(boot_pdpt_low) + 8
    movl %eax, PHYS(boot_pdpt_high) + 511 * 8
    addl $4096, %eax
    movl %eax, PHYS(boot_pdpt_low) + 16
    addl $4096, %eax
    movl %eax, PHYS(boot_pdpt_low) + 24
    xorl %ecx, %ecx
    movl $PTE_PRESENT_WRITE_LARGE, %eax
1:  movl %eax, PHYS(boot_pd)(, %ecx, 8)
    addl $0x200000, %eax
    incl %ecx
    cmpl $(4 * 512), %ecx
    jb 1b

    movl $CR4_PAE, %eax
    movl %eax, %cr4
    movl $PHYS(boot_pml4), %eax
    movl %eax, %cr3
    movl $MSR_IA32_EFER, %ecx
    rdmsr
    orl $EFER_LME, %eax
    testl $(1 << 20), %edi
    jz 2f
    orl $EFER_NXE, %eax
2:  wrmsr
    movl $(CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_PG), %eax
    movl %eax, %cr0
    lgdt PHYS(boot_gdt_pointer32)
    ljmp $SELECTOR_CODE64, $PHYS(in_long_mode)

// No console driver runs yet: the text goes out by COM1 and port 0xe9, and the exit device ends QEMU with an error.
no_long_mode:
    movl $PHYS(no_long_mode_text), %esi
1:  lodsb
    testb %al, %al
    jz 2f
    movw $0x3f8, %dx
    outb %al, %dx
    outb %al, $0xe9
    jmp 1b
2:  movl $0x12, %eax
    outl %eax, $0xf4
3:  hlt
    jmp 3b

    .code64
in_long_mode:
    movabsq $upper_half, %rax
    jmp *%rax
upper_half:
    movl $SELECTOR_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movq $boot_stack_top, %rsp
    movl %ebp, %edi
    movl %esi, %esi
    xorl %ebp, %ebp
    call kernel_entry            // kernel_entry(protocol, information); does not return
    ud2
