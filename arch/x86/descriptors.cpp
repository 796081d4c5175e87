// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/descriptors.hpp"

#include <array>

#include "arch/x86/msr.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "boot/layout.h"

namespace spinkick::x86::descriptors {
namespace {

struct [[gnu::packed]] TaskStateSegment {
    std::uint32_t reserved0;
    std::uint64_t rsp[3];
    std::uint64_t reserved1;
    std::uint64_t ist[7];
    std::uint64_t reserved2;
    std::uint16_t reserved3;
    std::uint16_t io_map_base;
};
static_assert(sizeof(TaskStateSegment) == 104, "Intel SDM 3A figure 7-11");

struct alignas(16) Tables {
    std::array<std::uint64_t, 6> gdt;
    TaskStateSegment tss;
};

struct [[gnu::packed]] Pointer {
    std::uint16_t limit;
    std::uint64_t base;
};
static_assert(sizeof(Pointer) == 10, "operand of LGDT in 64-bit mode");

constinit std::array<Tables, kMaxCpus> tables{};

constexpr std::uint64_t kCode64 = 0x00af9b000000ffff;
constexpr std::uint64_t kData = 0x00cf93000000ffff;
constexpr std::uint64_t kCode32 = 0x00cf9b000000ffff;

} // namespace

void load_this_cpu(CpuId cpu, void* percpu_block, const IstStacks& stacks) noexcept {
    if (xen_pv::is_active()) // Xen's flat segments serve, and traps arrive on the current stack
        return xen_pv::set_gs_base(percpu_block);
    auto& t = tables[index(cpu)];
    t.tss = {};
    t.tss.ist[0] = stacks.nmi;
    t.tss.ist[1] = stacks.double_fault;
    t.tss.ist[2] = stacks.machine_check;
    t.tss.io_map_base = sizeof(TaskStateSegment);

    const auto base = reinterpret_cast<std::uint64_t>(&t.tss);
    t.gdt = {0, kCode64, kData, kCode32, 0, 0};
    t.gdt[SELECTOR_TSS / 8] = (sizeof(TaskStateSegment) - 1) | ((base & 0xffffff) << 16) | (0x89ull << 40) |
                              (((base >> 24) & 0xff) << 56); // available 64-bit TSS, present
    t.gdt[SELECTOR_TSS / 8 + 1] = base >> 32;

    const Pointer pointer{sizeof(t.gdt) - 1, reinterpret_cast<std::uint64_t>(t.gdt.data())};
    asm volatile("lgdt %0\n\t"
                 "pushq %1\n\t"
                 "leaq 1f(%%rip), %%rax\n\t"
                 "pushq %%rax\n\t"
                 "lretq\n"
                 "1:\tmovl %2, %%eax\n\t"
                 "movl %%eax, %%ds\n\t"
                 "movl %%eax, %%es\n\t"
                 "movl %%eax, %%ss\n\t"
                 "xorl %%eax, %%eax\n\t"
                 "movl %%eax, %%fs\n\t"
                 "movl %%eax, %%gs\n\t"
                 "ltr %w3"
                 :
                 : "m"(pointer), "i"(SELECTOR_CODE64), "i"(SELECTOR_DATA), "r"(SELECTOR_TSS)
                 : "rax", "memory");
    wrmsr(Msr::IA32_GS_BASE, reinterpret_cast<std::uint64_t>(percpu_block));
}

std::uint64_t nmi_stack(CpuId cpu) noexcept { return tables[index(cpu)].tss.ist[0]; }

void set_nmi_stack(CpuId cpu, std::uint64_t top) noexcept {
    tables[index(cpu)].tss.ist[0] = top;
    asm volatile("" ::: "memory"); // the processor reads it at the next NMI, of which the compiler knows nothing
}

} // namespace spinkick::x86::descriptors
