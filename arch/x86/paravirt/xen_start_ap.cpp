// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen_start_ap.hpp"

#include "arch/x86/paravirt/hypercall.hpp"
#include "boot/layout.h"

namespace spinkick::paravirt {
namespace {

constexpr std::uint64_t kEferLma = 1 << 10; // a vCPU that starts in long mode has been activated, not only enabled
constexpr std::uint64_t kRflagsReserved = 1 << 1;

std::int64_t error_of(const HypercallResult& result) noexcept {
    if (result.fault.happened)
        return -1;
    return result.value < 0 ? result.value : 0;
}

} // namespace

XenStart start_xen_vcpu(XenVcpuId vcpu, std::uint64_t entry, std::uint64_t cr3, bool nx) noexcept {
    xen_abi::vcpu_hvm_context context{};
    context.mode = xen_abi::VCPU_HVM_MODE_64B;
    context.x86_64.rip = entry;
    context.x86_64.rflags = kRflagsReserved;
    context.x86_64.cr0 = CR0_PE | CR0_MP | CR0_ET | CR0_NE | CR0_WP | CR0_PG;
    context.x86_64.cr3 = cr3;
    context.x86_64.cr4 = CR4_PAE;
    context.x86_64.efer = EFER_LME | kEferLma | (nx ? EFER_NXE : 0);
    auto error = error_of(xen_hypercall(xen_abi::Hypercall::vcpu_op, xen_abi::VCPUOP_initialise, raw(vcpu),
                                        reinterpret_cast<std::uint64_t>(&context)));
    if (error != 0)
        return {error, "VCPUOP_initialise"};
    error = error_of(xen_hypercall(xen_abi::Hypercall::vcpu_op, xen_abi::VCPUOP_up, raw(vcpu)));
    return {error, "VCPUOP_up"};
}

} // namespace spinkick::paravirt
