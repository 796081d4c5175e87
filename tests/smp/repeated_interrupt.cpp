// SPDX-License-Identifier: BSD-2-Clause
//
// smp.repeated_interrupt: what a hypervisor delivers twice for one request is taken once (docs/known-deviations.md).
// The second delivery is played: the dispatcher is called with the frame that it would push.
#include <array>
#include <atomic>

#include "arch/x86/insn.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/xen_pv/active.hpp"
#include "kernel/clock.hpp"
#include "kernel/machine.hpp"
#include "kernel/test/test.hpp"

extern "C" void trap_dispatch(spinkick::x86::TrapFrame* frame) noexcept;
extern "C" const char trap_entry_begin[];

namespace spinkick::smp_tests {
namespace {

// Written by the handler on the CPU that waits for it.
constinit std::atomic<std::uint32_t> taken{0};
constinit bool repeats = false;

void deliver_at(const void* rip, std::uint64_t rflags) noexcept {
    x86::TrapFrame frame{};
    frame.vector = x86::lapic::kVectorTestHigh;
    frame.rip = reinterpret_cast<std::uint64_t>(rip);
    frame.rflags = rflags;
    trap_dispatch(&frame);
}

void on_interrupt() noexcept {
    const auto count = taken.load(std::memory_order_relaxed) + 1; // this CPU's own, as below
    taken.store(count, std::memory_order_relaxed);
    if (repeats && count == 1) {
        deliver_at(reinterpret_cast<const void*>(&on_interrupt), 0);              // while it runs
        deliver_at(reinterpret_cast<const void*>(&on_interrupt), x86::kRflagsIF); // where it would let others in
    }
}

/// How often the handler ran for one request.
std::uint32_t times_taken(bool with_repetitions) noexcept {
    taken.store(0, std::memory_order_relaxed);
    repeats = with_repetitions;
    machine::interrupt_at(x86::this_cpu(), machine::Level::higher_interrupt);
    const clock::Deadline deadline(seconds(1));
    while (taken.load(std::memory_order_relaxed) == 0 && !deadline.passed())
        machine::relax();
    return taken.load(std::memory_order_relaxed);
}

void run(test::TestContext& context) {
    if (x86::xen_pv::is_active())
        return context.skip("a Xen PV guest gets its interrupts as event channels");
    static constexpr machine::LevelHandlers kHandlers = {
        .interrupt = []() noexcept {}, .higher_interrupt = on_interrupt, .nmi = []() noexcept {}};
    machine::set_level_handlers(kHandlers);
    auto& counted = x86::percpu().repeated_interrupts;
    const auto before = counted;
    taken.store(0, std::memory_order_relaxed);
    deliver_at(trap_entry_begin, 0); // on top of a first one whose handler has not begun
    const auto at_entry = counted - before;
    const auto early = taken.load(std::memory_order_relaxed);
    const auto times = times_taken(true);
    const auto dropped = counted - before - at_entry;
    counted = before; // those were ours, and no fault of the machine
    const auto again = times_taken(false);
    if (early != 0 || at_entry != 1)
        return context.fail(
            "an interrupt on top of the entry of a trap, with IF=0, was taken %u times and dropped %llu times", early,
            static_cast<unsigned long long>(at_entry));
    if (times != 1 || dropped != 2)
        return context.fail("of one interrupt and its 2 repetitions %u were taken and %llu dropped", times,
                            static_cast<unsigned long long>(dropped));
    if (again != 1)
        return context.fail("the next one was taken %u times", again);
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "smp.repeated_interrupt",
               .claim = "an interrupt that is delivered again before its EOI is dropped and counted",
               .run = run}};
constinit const test::TestGroup repeated_interrupt_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(repeated_interrupt_group);

} // namespace spinkick::smp_tests
