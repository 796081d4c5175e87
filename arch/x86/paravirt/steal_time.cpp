// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/steal_time.hpp"

#include "arch/x86/insn.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/time_stamp.hpp"

namespace spinkick::paravirt::steal_time {

namespace detail {
constinit std::array<KvmPage, kMaxCpus> kvm_pages{};
constinit std::array<XenArea, kMaxCpus> xen_areas{};
} // namespace detail

namespace {

enum class Source : std::uint8_t { none, kvm, xen };

constexpr std::uint8_t kPoisonByte = 0xa5;
constexpr std::uint32_t kPoisonVersion = 0xa5a5a5a4; // even: an odd one would look like a write that never ends
constexpr std::uint32_t kMostRetries = 10'000;

constinit std::array<std::atomic<Source>, kMaxCpus> sources{};
constinit std::array<std::uint64_t, kMaxCpus> kvm_base{}; // steal at registration: KVM adds to what it finds
constinit std::atomic<std::uint32_t> count{0};

void publish(CpuId cpu, Source source) noexcept {
    sources[index(cpu)].store(source, std::memory_order_release); // the page and its base come with it
    count.fetch_add(1, std::memory_order_relaxed);
}

/// steal under the version rule; false if the host never finished writing.
bool read_kvm(CpuId cpu, std::uint64_t& steal) noexcept {
    const volatile auto& page = detail::kvm_pages[index(cpu)].shared;
    for (std::uint32_t retry = 0; retry < kMostRetries; ++retry) {
        const std::uint32_t before = page.version; // volatile loads: version, value, version
        steal = page.steal;
        if ((before & 1) == 0 && page.version == before)
            return true;
        x86::pause();
    }
    return false;
}

bool read_xen(CpuId cpu, xen_abi::vcpu_runstate_info& out) noexcept {
    const volatile auto& area = detail::xen_areas[index(cpu)].shared;
    for (std::uint32_t retry = 0; retry < kMostRetries; ++retry) {
        const std::uint64_t before = area.state_entry_time; // volatile loads: entry time, values, entry time
        out.state = area.state;
        for (std::size_t i = 0; i < 4; ++i)
            out.time[i] = area.time[i];
        out.state_entry_time = before;
        if ((before & xen_abi::XEN_RUNSTATE_UPDATE) == 0 && area.state_entry_time == before)
            return true;
        x86::pause();
    }
    return false;
}

/// Xen adds a span of time when it ends; a vCPU that waits for a CPU right now has one that has not.
std::uint64_t waiting_since_entry(const xen_abi::vcpu_runstate_info& info) noexcept {
    if (info.state != xen_abi::RUNSTATE_runnable && info.state != xen_abi::RUNSTATE_offline)
        return 0;
    pvclock::Reading clock;
    const auto* page = pvclock::page_of(x86::this_cpu());
    if (page == nullptr || !pvclock::read(*page, clock))
        return 0;
    const auto now = clock.at(x86::time_stamp()).value;
    return now > info.state_entry_time ? now - info.state_entry_time : 0;
}

} // namespace

bool init_kvm_this_cpu() noexcept {
    if (!hypervisors().has(KvmFeature::STEAL_TIME))
        return false;
    const CpuId cpu = x86::this_cpu();
    auto& page = detail::kvm_pages[index(cpu)].shared;
    page = {};
    page.steal = 0xa5a5a5a5;
    page.version = kPoisonVersion;
    page.preempted = kPoisonByte;
    const auto physical = x86::paging::phys_of_image(&page);
    const bool accepted = x86::wrmsr_safe(kvm_abi::MSR_KVM_STEAL_TIME, physical | kvm_abi::kEnable);
    const volatile auto& seen = page;
    // The host writes the page before it enters the vCPU again, so it is written by now.
    const bool written = accepted && seen.version != kPoisonVersion && seen.preempted == 0;
    std::uint64_t base = 0;
    if (!written || !read_kvm(cpu, base)) {
        if (accepted)
            (void)x86::wrmsr_safe(kvm_abi::MSR_KVM_STEAL_TIME, 0);
        page = {};
        return false;
    }
    kvm_base[index(cpu)] = base;
    publish(cpu, Source::kvm);
    return true;
}

bool init_xen_this_cpu(XenVcpuId vcpu) noexcept {
    const CpuId cpu = x86::this_cpu();
    auto& area = detail::xen_areas[index(cpu)].shared;
    area = {};
    area.state = -1;
    const xen_abi::vcpu_register_runstate_memory_area argument{reinterpret_cast<std::uint64_t>(&area)};
    const auto result = xen_hypercall(xen_abi::Hypercall::vcpu_op, xen_abi::VCPUOP_register_runstate_memory_area,
                                      raw(vcpu), reinterpret_cast<std::uint64_t>(&argument));
    const volatile auto& seen = area;
    // Xen fills the area within the call, and this CPU is running.
    if (!result.ok() || seen.state != xen_abi::RUNSTATE_running) {
        area = {};
        return false;
    }
    publish(cpu, Source::xen);
    return true;
}

std::uint32_t registered() noexcept { return count.load(std::memory_order_relaxed); }

bool is_registered(CpuId cpu) noexcept { return sources[index(cpu)].load(std::memory_order_acquire) != Source::none; }

Nanoseconds steal(CpuId cpu) noexcept {
    switch (sources[index(cpu)].load(std::memory_order_acquire)) { // pairs with publish()
    case Source::kvm: {
        std::uint64_t value = 0;
        return read_kvm(cpu, value) ? Nanoseconds{value - kvm_base[index(cpu)]} : Nanoseconds{0};
    }
    case Source::xen: {
        xen_abi::vcpu_runstate_info info{};
        if (!read_xen(cpu, info))
            return {0};
        const auto ended = info.time[xen_abi::RUNSTATE_runnable] + info.time[xen_abi::RUNSTATE_offline];
        return {ended + waiting_since_entry(info)};
    }
    case Source::none:
        break;
    }
    return {0};
}

bool is_preempted(CpuId cpu) noexcept {
    switch (sources[index(cpu)].load(std::memory_order_acquire)) {
    case Source::kvm:
        return is_preempted_by_kvm(cpu);
    case Source::xen:
        return is_preempted_by_xen(cpu);
    case Source::none:
        break;
    }
    return false;
}

} // namespace spinkick::paravirt::steal_time
