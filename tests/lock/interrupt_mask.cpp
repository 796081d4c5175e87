// SPDX-License-Identifier: BSD-2-Clause
//
// lock.interrupt_mask: lock(), try_lock() and unlock() return with interrupts as they found them, waiting or not, on
// both settings.
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

struct Shared {
    std::atomic<std::uint32_t> wrong{0};
    std::atomic<std::uint32_t> calls{0};
};
constinit Shared shared{};

template <class L>
void work(std::uint32_t worker, void* argument) {
    auto& s = *static_cast<Shared*>(argument);
    using Machine = typename L::Machine;
    auto& lock = lock_under_test<L>;
    std::uint32_t wrong = 0, calls = 0;
    // Both settings in any case: on a busy host all of the duration may have passed before the first round.
    for (std::uint32_t round = 0; round < 400 && (round < 2 || !workers::over()); ++round) {
        // Of two CPUs the boot CPU keeps its interrupts: its timer is what notices a stall.
        const bool mask = (round & 1) != 0 && (machine::cpu_count() >= 3 || worker != 0);
        typename Machine::InterruptState state{};
        if (mask)
            state = Machine::disable_interrupts();
        lock.lock();
        wrong += machine::interrupts_enabled() == mask;
        lock.unlock();
        wrong += machine::interrupts_enabled() == mask;
        if (lock.try_lock()) {
            wrong += machine::interrupts_enabled() == mask;
            lock.unlock();
        }
        wrong += machine::interrupts_enabled() == mask;
        if (mask)
            Machine::restore_interrupts(state);
        ++calls;
        workers::progress();
    }
    s.wrong.fetch_add(wrong, std::memory_order_relaxed);
    s.calls.fetch_add(calls, std::memory_order_relaxed);
}

template <class L>
void run(test::TestContext& context) {
    shared.wrong.store(0, std::memory_order_relaxed);
    shared.calls.store(0, std::memory_order_relaxed);
    // Half of the waits are with interrupts masked: the boot CPU watches where there are enough others.
    const std::uint32_t first = machine::cpu_count() >= 3 ? 1 : 0;
    if (!contend<L>(context, worker_count(first), first, work<L>, &shared, milliseconds(200)))
        return;
    const auto wrong = shared.wrong.load(std::memory_order_relaxed);
    if (const auto calls = shared.calls.load(std::memory_order_relaxed); calls < 2)
        return context.error("only %u rounds", calls);
    if (wrong != 0)
        context.fail("the mask had changed %u times in %u rounds", wrong, shared.calls.load(std::memory_order_relaxed));
    else
        context.pass();
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.interrupt_mask",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "lock(), try_lock() and unlock() leave the interrupt mask as they found it",
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    ExcludingLocks{});
constinit const test::TestGroup mask_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(mask_group);

} // namespace spinkick::lock_tests
