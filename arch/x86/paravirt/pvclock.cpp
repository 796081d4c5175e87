// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/pvclock.hpp"

#include <array>
#include <atomic>

#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/kvm_abi.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/percpu.hpp"

namespace spinkick::paravirt::pvclock {
namespace {

// A line each: the hypervisor writes them on different CPUs.
struct alignas(64) Slot {
    TimeInfo page;
    std::atomic<bool> registered;
};
constinit std::array<Slot, kMaxCpus> slots{};

} // namespace

bool init_this_cpu() noexcept {
    if (!hypervisors().has(KvmFeature::CLOCKSOURCE2))
        return false;
    auto& slot = slots[index(x86::this_cpu())];
    // What KVM does not write stays visible as nonsense: odd version, multiplier 0. The flags are zero, since KVM hands
    // on a "stopped" bit that it finds.
    slot.page = {};
    slot.page.version = 0xa5a5a5a5;
    slot.page.tsc_timestamp = slot.page.system_time = 0xa5a5a5a5a5a5a5a5;
    const auto physical = x86::paging::phys_of_image(&slot.page);
    if (!x86::wrmsr_safe(kvm_abi::MSR_KVM_SYSTEM_TIME_NEW, physical | kvm_abi::kEnable))
        return false;
    Reading reading; // the host has written before WRMSR returned to us
    const bool written = read(slot.page, reading) && khz_of(reading.mul, reading.shift) != 0;
    if (!written)
        (void)x86::wrmsr_safe(kvm_abi::MSR_KVM_SYSTEM_TIME_NEW, 0);
    slot.registered.store(written, std::memory_order_release); // the page is good when this is seen
    return written;
}

const volatile TimeInfo* page_of(CpuId cpu) noexcept {
    const auto& slot = slots[index(cpu)];
    if (slot.registered.load(std::memory_order_acquire))
        return &slot.page; // pairs with init_this_cpu()
    const auto* info = Xen::info_of(cpu);
    return info != nullptr ? &info->time : nullptr;
}

Frequency frequency() noexcept {
    Reading reading;
    if (const auto* page = page_of(CpuId{0}); page != nullptr && read(*page, reading)) {
        const auto khz = khz_of(reading.mul, reading.shift);
        if (khz != 0)
            return {khz, "pvclock"};
    }
    if (hypervisors().xen_tsc_khz != 0)
        return {hypervisors().xen_tsc_khz, "Xen CPUID leaf base+3"};
    return {};
}

bool take_guest_stopped() noexcept {
    auto& slot = slots[index(x86::this_cpu())];
    if (!slot.registered.load(std::memory_order_relaxed))
        return false; // set by this CPU
    const std::atomic_ref<std::uint8_t> flags(slot.page.flags);
    // relaxed: one bit, no data with it. An RMW, as KVM writes the other bits of the byte from another CPU.
    const auto before =
        flags.fetch_and(static_cast<std::uint8_t>(~pvclock_abi::PVCLOCK_GUEST_STOPPED), std::memory_order_relaxed);
    return (before & pvclock_abi::PVCLOCK_GUEST_STOPPED) != 0;
}

} // namespace spinkick::paravirt::pvclock
