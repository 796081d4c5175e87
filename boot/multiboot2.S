// SPDX-License-Identifier: BSD-2-Clause
//
// Entry of multiboot2: GRUB on BIOS and on UEFI. The entry-address tag alone serves both: GRUB leaves boot services itself
// and enters in 32-bit protected mode with EBX = physical address of the information (Multiboot2 specification 3.3).
// No relocatable tag: it would move an image that is linked to one address.
#include "boot/layout.h"

#define MULTIBOOT2_MAGIC 0xe85250d6
#define MULTIBOOT2_ARCHITECTURE_I386 0
#define MULTIBOOT2_TAG_END 0
#define MULTIBOOT2_TAG_ENTRY_ADDRESS 3

    .section .multiboot2, "a"
    .balign 8
header_begin:
    .long MULTIBOOT2_MAGIC, MULTIBOOT2_ARCHITECTURE_I386, header_end - header_begin
    .long -(MULTIBOOT2_MAGIC + MULTIBOOT2_ARCHITECTURE_I386 + (header_end - header_begin))
    .balign 8
    .short MULTIBOOT2_TAG_ENTRY_ADDRESS, 0
    .long 12, multiboot2_entry - KERNEL_BASE
    .balign 8
    .short MULTIBOOT2_TAG_END, 0
    .long 8
header_end:

    .section .text.boot, "ax"
    .code32
    .globl multiboot2_entry
multiboot2_entry:
    movl %ebx, %esi
    movl $BOOT_PROTOCOL_MULTIBOOT2, %edi
    jmp enter_long_mode
