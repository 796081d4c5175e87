// SPDX-License-Identifier: BSD-2-Clause
//
// The instruction that calls the hypervisor: VMCALL (Intel VMX) or VMMCALL (AMD SVM). A hypervisor may refuse either:
// by #UD; by #PF on the instruction, where it wanted to patch read-only code; by an error in RAX. So each is under a
// fix-up and tells a fault from a return. The register that says "returned" is cleared by the instruction after the
// call, which a fault skips.
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/fixup.hpp"
#include "arch/x86/paravirt/kvm_abi.hpp"
#include "arch/x86/paravirt/xen_abi.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/xen_pv/active.hpp"

namespace spinkick::paravirt {

enum class HypercallInstruction : std::uint8_t { vmcall, vmmcall };

[[nodiscard]] constexpr const char* name(HypercallInstruction instruction) noexcept {
    return instruction == HypercallInstruction::vmcall ? "vmcall" : "vmmcall";
}
[[nodiscard]] constexpr HypercallInstruction other(HypercallInstruction instruction) noexcept {
    return instruction == HypercallInstruction::vmcall ? HypercallInstruction::vmmcall : HypercallInstruction::vmcall;
}

/// The instruction of this processor's vendor. The first caller asks CPUID, on the spot: a vendor variable that nobody
/// had set yet once made AMD machines execute Intel's instruction. Later ones must not ask, since CPUID is an exit
/// itself.
[[nodiscard]] inline HypercallInstruction vendors_instruction() noexcept {
    enum class Cached : std::uint8_t { unknown, vmcall, vmmcall };
    static constinit std::atomic<Cached> cached{Cached::unknown};
    // relaxed: whoever finds it unknown computes the same value.
    auto known = cached.load(std::memory_order_relaxed);
    if (known == Cached::unknown) {
        known = x86::vendor() == x86::Vendor::amd ? Cached::vmmcall : Cached::vmcall;
        cached.store(known, std::memory_order_relaxed);
    }
    return known == Cached::vmmcall ? HypercallInstruction::vmmcall : HypercallInstruction::vmcall;
}

struct HypercallResult {
    std::int64_t value = 0; ///< RAX, if nothing faulted
    x86::Fault fault;

    [[nodiscard]] constexpr bool ok() const noexcept { return !fault.happened && value >= 0; }
};

namespace detail {

inline void count_hypercall(kvm_abi::Hypercall number, std::uint64_t amount) noexcept {
    if (number == kvm_abi::Hypercall::KICK_CPU)
        x86::count(sync::LockEvent::kvm_kick_cpu, amount);
    else if (number == kvm_abi::Hypercall::SCHED_YIELD)
        x86::count(sync::LockEvent::kvm_sched_yield, amount);
}

[[nodiscard]] constexpr HypercallResult hypercall_result(std::uint64_t rax, std::uint64_t rdx,
                                                         std::uint32_t faulted) noexcept {
    if (faulted == 0)
        return {static_cast<std::int64_t>(rax), {}};
    return {0, {static_cast<std::uint32_t>(rax), true, rdx}};
}

} // namespace detail

/// KVM's convention: RAX number, RBX RCX RDX RSI arguments, result in RAX, nothing else changed. Kicks and yields that
/// KVM took are counted, so that they can be compared with what it says to have done.
[[nodiscard]] inline HypercallResult kvm_hypercall(HypercallInstruction instruction, kvm_abi::Hypercall number,
                                                   std::uint64_t a0 = 0, std::uint64_t a1 = 0, std::uint64_t a2 = 0,
                                                   std::uint64_t a3 = 0) noexcept {
    // Before, and taken back if KVM refuses: an NMI that throws this CPU out of its work comes at the end of the exit.
    detail::count_hypercall(number, 1);
    auto rax = static_cast<std::uint64_t>(number);
    std::uint64_t rdx = a2;
    std::uint32_t faulted = 1;
    if (instruction == HypercallInstruction::vmcall)
        asm volatile("1:\tvmcall\n\t"
                     "xorl %[faulted], %[faulted]\n"
                     "2:\n" X86_FIXUP("1b", "2b")
                     : "+a"(rax), "+d"(rdx), [faulted] "+r"(faulted)
                     : "b"(a0), "c"(a1), "S"(a3)
                     : "memory", "cc");
    else
        asm volatile("1:\tvmmcall\n\t"
                     "xorl %[faulted], %[faulted]\n"
                     "2:\n" X86_FIXUP("1b", "2b")
                     : "+a"(rax), "+d"(rdx), [faulted] "+r"(faulted)
                     : "b"(a0), "c"(a1), "S"(a3)
                     : "memory", "cc");
    const auto result = detail::hypercall_result(rax, rdx, faulted);
    if (!result.ok())
        detail::count_hypercall(number, ~std::uint64_t{0});
    return result;
}

/// Xen's 64-bit convention: RAX number, RDI RSI RDX R10 R8 arguments, which Xen may overwrite (and R9, the sixth);
/// result in RAX. The "returned" register is RBX, which is no argument. Xen never patches: its instruction is the
/// vendor's.
[[nodiscard]] inline HypercallResult xen_hypercall(xen_abi::Hypercall number, std::uint64_t a0 = 0,
                                                   std::uint64_t a1 = 0, std::uint64_t a2 = 0, std::uint64_t a3 = 0,
                                                   std::uint64_t a4 = 0) noexcept {
    auto rax = static_cast<std::uint64_t>(number);
    std::uint64_t rdi = a0, rsi = a1, rdx = a2;
    register std::uint64_t r10 asm("r10") = a3;
    register std::uint64_t r8 asm("r8") = a4;
    if (x86::xen_pv::is_active()) {
        // A PV guest enters Xen by SYSCALL, which cannot be refused.
        asm volatile("syscall"
                     : "+a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r10), "+r"(r8)
                     :
                     : "memory", "cc", "rcx", "r11", "r9");
        return {static_cast<std::int64_t>(rax), {}};
    }
    std::uint32_t faulted = 1;
    if (vendors_instruction() == HypercallInstruction::vmcall)
        asm volatile("1:\tvmcall\n\t"
                     "xorl %[faulted], %[faulted]\n"
                     "2:\n" X86_FIXUP("1b", "2b")
                     : "+a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r10), "+r"(r8), [faulted] "+b"(faulted)
                     :
                     : "memory", "cc", "r9");
    else
        asm volatile("1:\tvmmcall\n\t"
                     "xorl %[faulted], %[faulted]\n"
                     "2:\n" X86_FIXUP("1b", "2b")
                     : "+a"(rax), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r10), "+r"(r8), [faulted] "+b"(faulted)
                     :
                     : "memory", "cc", "r9");
    return detail::hypercall_result(rax, rdx, faulted);
}

} // namespace spinkick::paravirt
