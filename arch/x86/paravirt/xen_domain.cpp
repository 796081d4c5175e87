// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen_domain.hpp"

#include "arch/x86/paravirt/hypercall.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/xen_error.hpp"

namespace spinkick::paravirt::xen_domain {
namespace {

constinit bool initial_domain = false;

HypercallResult get_param(std::uint32_t index, std::uint64_t& value) noexcept {
    xen_abi::xen_hvm_param argument{xen_abi::DOMID_SELF, 0, index, 0};
    const auto result =
        xen_hypercall(xen_abi::Hypercall::hvm_op, xen_abi::HVMOP_get_param, reinterpret_cast<std::uint64_t>(&argument));
    value = argument.value;
    return result;
}

} // namespace

void set_initial(bool initial) noexcept { initial_domain = initial; }
bool is_initial() noexcept { return initial_domain; }

bool read_own_id(std::uint32_t& id) noexcept {
    namespace abi = cpuid_abi;
    const auto* xen = hypervisors().find(HypervisorKind::xen);
    if (xen == nullptr || !xen->has(abi::kXenHvm))
        return false;
    const auto leaf = x86::cpuid(xen->base + abi::kXenHvm);
    id = leaf.ecx;
    return (leaf.eax & abi::kXenHvmHasDomainId) != 0;
}

ConsolePlace ask_console_place() noexcept {
    ConsolePlace place;
    std::uint64_t port = 0;
    if (const auto result = get_param(xen_abi::HVM_PARAM_CONSOLE_PFN, place.frame); !result.ok())
        place.lack.set("HVMOP_get_param of CONSOLE_PFN gives %s", xen_error_text(result).c_str());
    else if (const auto second = get_param(xen_abi::HVM_PARAM_CONSOLE_EVTCHN, port); !second.ok())
        place.lack.set("HVMOP_get_param of CONSOLE_EVTCHN gives %s", xen_error_text(second).c_str());
    else if (place.frame == 0 || place.frame == ~std::uint64_t{0} || place.frame >> 40 != 0)
        place.lack.set("HVM parameter CONSOLE_PFN is 0x%llx", static_cast<unsigned long long>(place.frame));
    else if (port == 0 || port >= xen_abi::kPorts)
        place.lack.set("HVM parameter CONSOLE_EVTCHN is 0x%llx", static_cast<unsigned long long>(port));
    place.port = static_cast<std::uint32_t>(port);
    return place;
}

} // namespace spinkick::paravirt::xen_domain
