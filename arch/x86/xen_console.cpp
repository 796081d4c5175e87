// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/xen_console.hpp"

#include <string_view>

#include "arch/x86/insn.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/xen_domain.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "drivers/console.hpp"
#include "drivers/xen_console_ring.hpp"

namespace spinkick::x86::xen_console {
namespace {

using drivers::xencons_interface;

constinit std::uint32_t port = 0;
constinit std::uint64_t frame = 0; ///< of a PVH or HVM guest; a PV guest's page stays where it is
constinit bool attached_before = false;

void notify() noexcept {
    const paravirt::xen_abi::evtchn_port argument{port};
    // Refused only if the other end has closed the channel, and then nobody reads: the ring's bound ends the wait.
    (void)paravirt::xen_hypercall(paravirt::xen_abi::Hypercall::event_channel_op, paravirt::xen_abi::EVTCHNOP_send,
                                  reinterpret_cast<std::uint64_t>(&argument));
}

void rest() noexcept {
    // The reader may need this very CPU.
    (void)paravirt::xen_hypercall(paravirt::xen_abi::Hypercall::sched_op, paravirt::xen_abi::SCHEDOP_yield);
}

std::uint64_t ticks() noexcept { return rdtsc().value; }

constinit drivers::XenConsoleRing ring{{notify, rest, ticks}};

constexpr drivers::console::Device kDevice{
    [](std::string_view bytes) noexcept { ring.write(bytes); }, "Xen console ring", []() noexcept { ring.drain(); },
    []() noexcept { return ring.lost(); }, []() noexcept { return ring.read(); }};

xencons_interface* map_frame() noexcept {
    return static_cast<xencons_interface*>(paging::map_physical(frame * paging::kPageBytes, sizeof(xencons_interface)));
}

} // namespace

Lack use_ring(std::uint64_t pv_start_info) noexcept {
    xencons_interface* page = nullptr;
    Lack lack;
    if (xen_pv::is_active()) {
        const auto place = xen_pv::console_place(pv_start_info);
        page = static_cast<xencons_interface*>(place.page);
        port = place.port;
        lack = place.lack;
    } else {
        const auto place = paravirt::xen_domain::ask_console_place();
        frame = place.frame;
        port = place.port;
        lack = place.lack;
        if (lack.empty()) {
            page = map_frame();
            if (page == nullptr)
                lack.set("its frame 0x%llx is beyond the boot tables", static_cast<unsigned long long>(frame));
        }
    }
    if (lack.empty()) {
        ring.attach(page);
        drivers::console::use(kDevice);
    }
    return lack;
}

void before_final_tables() noexcept {
    attached_before = frame != 0 && ring.is_attached();
    if (attached_before)
        ring.attach(nullptr);
}

void after_final_tables() noexcept {
    if (attached_before)
        ring.attach(map_frame());
}

} // namespace spinkick::x86::xen_console
