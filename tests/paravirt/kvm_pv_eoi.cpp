// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: PV EOI. The host sets a bit in the guest's memory when it injects an interrupt whose end it need not be
// told; a handler that clears the bit has ended its interrupt without a write to the APIC. Each interrupt is taken
// once, the vector is not in service afterwards, and so the next one gets through. A host with a virtual APIC never
// sets the bit, which is as good.
#include "arch/x86/lapic.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/traps.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

namespace abi = paravirt::kvm_abi;

constexpr std::uint32_t kMayBeSkipped = 1; ///< bit 0 of the word
constexpr Nanoseconds kLimit = seconds(1);
constexpr std::uint32_t kLeast = 32;

/// The word that the host writes, on a line of its own.
struct alignas(64) Word {
    std::atomic<std::uint32_t> value{0};
};
constinit Word word{};

struct Shared {
    Turn ready;
    std::atomic<bool> over{false};
    std::atomic<std::uint32_t> taken{0};
    std::uint32_t skipped = 0, sent = 0, in_service = 0;
    bool accepted = false, lost = false;
};
constinit Shared shared{};

void on_interrupt(x86::TrapFrame&) noexcept {
    // One instruction, as the host demands: it may take the bit back between two. relaxed: a bit of its own.
    if ((word.value.exchange(0, std::memory_order_relaxed) & kMayBeSkipped) != 0)
        ++shared.skipped;
    else
        x86::lapic::eoi();
    shared.taken.fetch_add(1, std::memory_order_release); // the handler has ended its interrupt when this is seen
}

void target() noexcept {
    word.value.store(0, std::memory_order_relaxed);
    shared.accepted = x86::wrmsr_safe(abi::MSR_KVM_PV_EOI_EN, x86::paging::phys_of_image(&word.value) | abi::kEnable);
    shared.ready.set(1);
    while (!shared.over.load(std::memory_order_acquire)) {
        machine::relax();
        workers::progress();
    }
    if (shared.accepted)
        (void)x86::wrmsr_safe(abi::MSR_KVM_PV_EOI_EN, 0);
    // An interrupt that is told to have ended does so at the next exit: reading the register is one.
    shared.in_service = x86::lapic::highest_in_service();
}

void sender() noexcept {
    const auto cpu = workers::cpu_of(kSleeper, first_cpu());
    const Rounds rounds(milliseconds(10), kLeast);
    shared.ready.await(1);
    for (std::uint32_t round = 1; shared.accepted && !shared.lost && !rounds.is_last(round); ++round) {
        machine::send_test_interrupt(cpu);
        shared.sent = round;
        const clock::Deadline deadline(kLimit);
        while (shared.taken.load(std::memory_order_acquire) < round && !(shared.lost = deadline.passed()))
            machine::relax();
        workers::progress();
    }
    shared.over.store(true, std::memory_order_release);
}

void run(test::TestContext& context) {
    if (!paravirt::hypervisors().has(paravirt::KvmFeature::PV_EOI))
        return context.skip("no PV_EOI: features EAX=0x%08x", paravirt::hypervisors().kvm_features);
    shared.ready.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.taken.store(0, std::memory_order_relaxed);
    shared.skipped = shared.sent = shared.in_service = 0;
    shared.accepted = shared.lost = false;
    x86::traps::set_handler(x86::lapic::kVectorTestLow, on_interrupt, false);
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? sender() : target(); };
    if (!run_workers<paravirt::Kvm>(context, 2, body, nullptr, "interrupts with PV EOI stalled the machine"))
        return;
    const auto taken = shared.taken.load(std::memory_order_relaxed);
    if (!shared.accepted)
        return context.fail("offered, but the write of MSR_KVM_PV_EOI_EN raises #GP");
    if (taken != shared.sent)
        return context.fail("%u interrupts sent, %u taken, %u of them ended by the bit", shared.sent, taken,
                            shared.skipped);
    if (shared.in_service != 0)
        return context.fail("vector 0x%x is still in service after %u ends by the bit", shared.in_service,
                            shared.skipped);
    if (shared.skipped == 0)
        return context.skip("offered, but the host set the bit for none of %u interrupts", shared.sent);
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.pv_eoi_ends_interrupts",
               .backend = paravirt::Kvm::kName,
               .claim = "an interrupt that is ended by the host's bit has ended, and the next one comes",
               .min_cpus = 2,
               .needs = test::Backend::kvm,
               .run = run}};
constinit const test::TestGroup kvm_pv_eoi_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kvm_pv_eoi_group);

} // namespace spinkick::paravirt_tests
