// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen.hpp"

#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/xen_events.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"

namespace spinkick::paravirt {
namespace {

using xen_abi::Hypercall;

constexpr std::uint64_t kPageBytes = 4096;

/// Xen puts its own page in the place of this one.
struct alignas(kPageBytes) SharedPage {
    xen_abi::shared_info info;
};
constinit SharedPage shared_page{};

struct alignas(64) VcpuInfoSlot {
    xen_abi::vcpu_info info;
};
constinit std::array<VcpuInfoSlot, kMaxCpus> vcpu_infos{};

/// The page that is shared: a PV guest has it from the start, others ask for it.
xen_abi::shared_info& shared() noexcept {
    return x86::xen_pv::is_active() ? *x86::xen_pv::shared_info() : shared_page.info;
}

std::uint64_t address_of(const void* object) noexcept { return reinterpret_cast<std::uint64_t>(object); }

} // namespace

std::uint64_t Xen::address_for_xen(const void* object) noexcept {
    return x86::xen_pv::is_active() ? x86::xen_pv::machine_of_image(object) : x86::paging::phys_of_image(object);
}

HypercallResult Xen::init(EventChannels form) noexcept {
    auto& vcpu = x86::percpu().xen_vcpu_id;
    if (!read_own_xen_vcpu_id(vcpu))
        vcpu = XenVcpuId{0};
    if (x86::xen_pv::is_active()) {
        if (form != EventChannels::fifo)
            return {};
        const bool enabled = x86::interrupts_enabled(); // the upcall handler must not see one form and take another
        x86::xen_pv::mask_interrupts();
        const auto result = xen_events::use_fifo(vcpu);
        if (enabled)
            x86::xen_pv::unmask_interrupts();
        return result;
    }
    // An HVM domain is born with the 32-bit layout of all that it shares with Xen. This call, which chooses no upcall,
    // has a side effect that nothing else has: Xen takes the layout from the mode of the vCPU that makes it.
    const xen_abi::xen_hvm_param no_upcall{xen_abi::DOMID_SELF, 0, xen_abi::HVM_PARAM_CALLBACK_IRQ, 0};
    if (const auto latched = xen_hypercall(Hypercall::hvm_op, xen_abi::HVMOP_set_param, address_of(&no_upcall));
        !latched.ok())
        return latched;
    const xen_abi::xen_add_to_physmap argument{xen_abi::DOMID_SELF, 0, xen_abi::XENMAPSPACE_shared_info, 0,
                                               x86::paging::phys_of_image(&shared_page) / kPageBytes};
    auto result = xen_hypercall(Hypercall::memory_op, xen_abi::XENMEM_add_to_physmap, address_of(&argument));
    if (!result.ok())
        return result;
    xen_events::mask_all();
    if (form == EventChannels::fifo)
        result = xen_events::use_fifo(vcpu);
    // Without it a reader on another CPU could mix two states of a runstate area. Refused by old versions: they are
    // read as they are.
    (void)xen_hypercall(Hypercall::vm_assist, xen_abi::VMASST_CMD_enable, xen_abi::VMASST_TYPE_runstate_update_flag);
    return result;
}

HypercallResult Xen::init_this_cpu() noexcept {
    auto& block = x86::percpu();
    if (!read_own_xen_vcpu_id(block.xen_vcpu_id))
        block.xen_vcpu_id = XenVcpuId{raw(block.cpu)};
    const auto vcpu = block.xen_vcpu_id;
    auto& slot = slots_[index(block.cpu)];

    HypercallResult result;
    if (!slot.registered.load(std::memory_order_relaxed)) // else its starter did
        result = register_vcpu_info(block.cpu);
    if (!result.ok())
        return result;

    (void)steal_time::init_xen_this_cpu(vcpu);

    xen_abi::evtchn_bind_ipi bind{raw(vcpu), 0};
    result = xen_hypercall(Hypercall::event_channel_op, xen_abi::EVTCHNOP_bind_ipi, address_of(&bind));
    if (!result.ok())
        return result;
    if (bind.port == 0 || bind.port >= xen_abi::kPorts)
        return {-1, {}};
    slot.port.store(bind.port, std::memory_order_release); // from here on this CPU may sleep and be kicked
    return result;
}

// For every vCPU, also the first 32, which have a place in the shared page: one rule, and vCPU 32 is not special.
HypercallResult Xen::register_vcpu_info(CpuId cpu) noexcept {
    auto& info = vcpu_infos[index(cpu)].info;
    const auto address = address_for_xen(&info);
    const xen_abi::vcpu_register_vcpu_info place{address / kPageBytes, static_cast<std::uint32_t>(address % kPageBytes),
                                                 0};
    if (x86::xen_pv::is_active())
        info.evtchn_upcall_mask = 1; // this is the interrupt mask there
    const auto result = xen_hypercall(Hypercall::vcpu_op, xen_abi::VCPUOP_register_vcpu_info,
                                      raw(x86::percpu_of(cpu).xen_vcpu_id), address_of(&place));
    if (!result.ok())
        return result;
    if (x86::xen_pv::is_active())
        x86::xen_pv::use_vcpu_info(cpu, &info);
    slots_[index(cpu)].registered.store(true, std::memory_order_release); // the area is Xen's when this is seen
    return xen_events::add_vcpu(cpu, x86::percpu_of(cpu).xen_vcpu_id);
}

bool Xen::clear_pending(Slot& slot) noexcept {
    // A full barrier: the caller's look at its condition must not move above it. See the table in xen.hpp.
    return xen_events::clear_pending(slot.port.load(std::memory_order_relaxed));
}

void Xen::poll(Slot& slot) noexcept {
    const std::uint32_t port = slot.port.load(std::memory_order_relaxed);
    const xen_abi::sched_poll argument{address_of(&port), 1, 0, 0};
    ++slot.polls;
    (void)xen_hypercall(Hypercall::sched_op, xen_abi::SCHEDOP_poll, address_of(&argument));
}

bool Xen::interrupted_since(std::uint64_t interrupts) noexcept {
    if (x86::percpu().interrupts != interrupts)
        return true;
    // With the mask set an interrupt ends the poll as well and stays requested. Asking the APIC is an exit: only if
    // there is no token, which is rare.
    if (x86::interrupts_enabled() || sync::KickTokens<Xen>::unspent(this_cpu()) != 0)
        return false;
    return x86::xen_pv::is_active() ? x86::xen_pv::upcall_pending() : x86::lapic::highest_requested() != 0;
}

void Xen::send(CpuId cpu) noexcept {
    const xen_abi::evtchn_port argument{port_of(cpu)};
    if (argument.port == 0)
        return;
    ++slots_[index(this_cpu())].sends;
    (void)xen_hypercall(Hypercall::event_channel_op, xen_abi::EVTCHNOP_send, address_of(&argument));
}

void Xen::yield_to(CpuId) noexcept { (void)xen_hypercall(Hypercall::sched_op, xen_abi::SCHEDOP_yield); }

volatile xen_abi::vcpu_info* Xen::info_of(CpuId cpu) noexcept {
    return slots_[index(cpu)].registered.load(std::memory_order_acquire) ? &vcpu_infos[index(cpu)].info : nullptr;
}

xen_abi::shared_info& Xen::event_page() noexcept { return shared(); }

bool Xen::is_pending(CpuId cpu) noexcept {
    const auto port = port_of(cpu);
    return port != 0 && xen_events::is_pending(port);
}

bool Xen::is_masked(CpuId cpu) noexcept {
    const auto port = port_of(cpu);
    return port != 0 && xen_events::is_masked(port);
}

std::uint64_t Xen::polls() noexcept {
    std::uint64_t sum = 0;
    for (const auto& slot : slots_)
        sum += slot.polls;
    return sum;
}

std::uint64_t Xen::sends() noexcept {
    std::uint64_t sum = 0;
    for (const auto& slot : slots_)
        sum += slot.sends;
    return sum;
}

} // namespace spinkick::paravirt
