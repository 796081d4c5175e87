/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Numbers that assembly, the linker script and C++ share. Only #defines: all three read it.
 */
#pragma once

/* Virtual address of physical address 0 as the image is linked: the top 2 GiB, where 32-bit signed offsets reach. */
#define KERNEL_BASE 0xffffffff80000000
/* Physical load address: 2 MiB, free under SeaBIOS, qboot, OVMF (1 MiB..0x805fff), GRUB and Xen. */
#define IMAGE_PHYS 0x200000
/* The stack of the boot CPU; a page below it is taken away once the final tables are in force. */
#define BOOT_STACK_BYTES 16384

/* Who entered: one entry symbol per protocol hands its own number on; registers of loaders are never compared. */
#define BOOT_PROTOCOL_PVH 1
#define BOOT_PROTOCOL_MULTIBOOT2 2
#define BOOT_PROTOCOL_XEN_PV 3

/* Selectors of the boot GDT and of every per-CPU GDT. */
#define SELECTOR_CODE64 0x08
#define SELECTOR_DATA 0x10
#define SELECTOR_CODE32 0x18
#define SELECTOR_TSS 0x20

#define CR0_PE 0x00000001
#define CR0_MP 0x00000002
#define CR0_ET 0x00000010
#define CR0_NE 0x00000020
#define CR0_WP 0x00010000
#define CR0_PG 0x80000000
#define CR4_PAE 0x20
#define MSR_IA32_EFER 0xc0000080
#define EFER_LME 0x100
#define EFER_NXE 0x800

/* ap_boot_entry (arch/x86/smp.hpp) as the AP start code walks it. */
#define AP_ENTRY_BYTES 24
#define AP_ENTRY_APIC_ID 0
#define AP_ENTRY_CPU 4
#define AP_ENTRY_STACK 8
#define AP_ENTRY_ARRIVED 16
