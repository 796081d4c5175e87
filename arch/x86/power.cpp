// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/power.hpp"

#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "drivers/console.hpp"
#include "drivers/debug_exit.hpp"
#include "kernel/clock.hpp"
#include "kernel/console.hpp"

namespace spinkick::x86::power {
namespace {

constinit Method hypervisor_method = nullptr;

struct [[gnu::packed]] Pointer {
    std::uint16_t limit;
    std::uint64_t base;
};

} // namespace

void set_hypervisor_method(Method method) noexcept { hypervisor_method = method; }

void triple_fault() noexcept {
    if (xen_pv::is_active())
        xen_pv::crash();
    const Pointer empty{0, 0};
    asm volatile("lidt %0\n\tud2" ::"m"(empty) : "memory");
    for (;;)
        hlt();
}

void off(std::uint8_t exit_value) noexcept {
    mask_interrupts();
    drivers::debug_exit(exit_value);
    // A newer QEMU (10.0) ends by its main loop, a while after the write.
    for (const clock::Deadline deadline(milliseconds(500)); !deadline.passed();)
        pause();
    console_write_line("spinkick: exit device absent");
    drivers::console::drain();
    if (hypervisor_method != nullptr)
        hypervisor_method(exit_value);
    triple_fault();
}

} // namespace spinkick::x86::power
