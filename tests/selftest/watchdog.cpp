// SPDX-License-Identifier: BSD-2-Clause
//
// selftest: the watchdog sees every kind of standstill, gets every CPU out of it, and the machine is whole afterwards.
#include <array>
#include <atomic>

#include "arch/x86/paravirt/backends.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/traced_lock.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/pv_ticket_lock.hpp"
#include "kernel/sync/ticket_lock.hpp"
#include "kernel/test/faults.hpp"
#include "kernel/test/test.hpp"
#include "tests/selftest/standstills.hpp"

namespace spinkick::selftest {
namespace {

constexpr Nanoseconds kShort = milliseconds(200);

/// Worker 1 (or 0 on one CPU) stops in a way of its own when the others, which return at once, are through.
template <auto Stop>
void stall(test::TestContext& context) {
    const auto usual = workers::watchdog();
    workers::set_watchdog(kShort);
    workers::Job job;
    job.count = workers::available() < 2 ? 1 : 2;
    job.stall_expected = true;
    static constinit std::atomic<std::uint32_t> through{0};
    through.store(0, std::memory_order_relaxed);
    job.body = [](std::uint32_t worker, void* others) {
        if (worker != workers::available() - 1 && worker != 1) {
            through.fetch_add(1, std::memory_order_relaxed); // a count on its own
            return;
        }
        while (through.load(std::memory_order_relaxed) != *static_cast<const std::uint32_t*>(others)) {
            workers::progress();
            machine::yield();
        }
        Stop();
    };
    std::uint32_t others = job.count - 1;
    job.argument = &others;
    const auto outcome = workers::run(job);
    workers::set_watchdog(usual);
    if (outcome.rescued != 1)
        return context.fail("%u workers rescued, 1 expected", outcome.rescued);

    // The rescued CPU works again, with interrupts on, and takes part in a second job.
    static constinit std::atomic<std::uint32_t> sane{0};
    sane.store(0, std::memory_order_relaxed);
    job.body = [](std::uint32_t, void*) {
        if (machine::interrupts_enabled())
            sane.fetch_add(1, std::memory_order_relaxed);
    };
    const auto second = workers::run(job);
    if (!second.all_completed() || sane.load(std::memory_order_relaxed) != job.count)
        return context.fail("after the rescue %u of %u workers ran with interrupts on",
                            sane.load(std::memory_order_relaxed), job.count);
    context.pass();
}

void spin() noexcept {
    for (;;)
        machine::relax();
}

/// Spins in a debug trap out of an NMI. Not in the first one: until that has returned no further NMI gets in, so there
/// is nothing by which anybody could be thrown out.
void spin_in_nested_trap() noexcept {
    static constinit std::atomic<std::uint32_t> traps{0};
    traps.store(0, std::memory_order_relaxed); // a count of this CPU's own
    machine::set_level_handlers(
        {.interrupt = spin, .higher_interrupt = spin, .nmi = spin, .debug_trap = []() noexcept -> bool {
             if (traps.fetch_add(1, std::memory_order_relaxed) != 0)
                 spin();
             return false;
         }});
    machine::interrupt_at(machine::this_cpu(), machine::Level::nmi);
    spin();
}

using Spinning = stress::Traced<sync::TicketLock<paravirt::Native>>;
using Sleeping = stress::Traced<sync::PvTicketLock<paravirt::Ipi>>;

void spin_beside_one_that_gets_on(std::uint32_t worker, void*) {
    while (worker == 0 || !workers::over()) {
        if (worker == 0) {
            machine::relax();
        } else { // not at the cost of the other one: on one CPU, or beside it on the host's, that would be the host's
                 // fault
            workers::progress();
            machine::yield();
        }
    }
}

/// A stall of two workers must be called what it is. A vCPU that the host does not run while they stand still is the
/// nearer cause: then the watchdog waits longer, twice. Where steal time is not known that is no way out.
template <workers::Body kBody, workers::StallKind kKind>
void called(test::TestContext& context) {
    const auto usual = workers::watchdog();
    workers::Outcome outcome;
    for (const auto patience : {milliseconds(100), milliseconds(200), milliseconds(400)}) {
        if (outcome.verdict.kind == kKind)
            break;
        renew_pair<Spinning>();
        renew_pair<Sleeping>();
        workers::set_watchdog(patience);
        workers::Job job;
        job.body = kBody;
        job.count = 2;
        job.first = workers::available(1) >= 2 ? 1 : 0;
        job.duration = seconds(5);
        job.stall_expected = true;
        outcome = workers::run(job);
    }
    renew_pair<Spinning>();
    renew_pair<Sleeping>();
    workers::set_watchdog(usual);
    const auto kind = outcome.verdict.kind;
    if (kind == kKind)
        context.pass();
    else if (kind == workers::StallKind::holder_preempted || kind == workers::StallKind::slow_host)
        context.skip("the host kept CPU %u waiting for most of 100, of 200 and of 400 ms, and the watchdog says so",
                     raw(outcome.verdict.cpu));
    else
        context.fail("the watchdog says: %s", workers::name(kind));
}

void deadline(test::TestContext& context) {
    workers::Job job;
    job.deadline = milliseconds(300);
    job.stall_expected = true;
    job.body = [](std::uint32_t, void*) {
        for (;;)
            workers::progress(); // gets on for ever and ends never
    };
    const auto outcome = workers::run(job);
    if (outcome.rescued == 1)
        context.pass();
    else
        context.fail("a job without end was not ended");
}

constexpr std::array kTests = {
    test::Test{.name = "selftest.spinning_worker_is_rescued",
               .claim = "a worker that spins for ever is found and thrown out",
               .run = stall<spin>},
    test::Test{.name = "selftest.spinning_worker_with_interrupts_off_is_rescued",
               .claim = "a worker that spins with interrupts off is found and thrown out",
               .min_cpus = 2,
               .run = stall<faults::spin_with_interrupts_off>},
    test::Test{.name = "selftest.sleeping_worker_is_rescued",
               .claim = "a worker that sleeps for ever times out",
               .run = stall<faults::halt_with_interrupts_on>},
    test::Test{.name = "selftest.sleeping_worker_with_interrupts_off_is_rescued",
               .claim = "a worker halted with interrupts off times out",
               .min_cpus = 2,
               .run = stall<faults::halt_with_interrupts_off>},
    test::Test{.name = "selftest.worker_in_nested_trap_is_rescued",
               .claim = "a worker that spins in a debug trap out of an NMI is found and thrown out",
               .min_cpus = 2,
               .run = stall<spin_in_nested_trap>},
    test::Test{.name = "selftest.deadlock_is_called_so",
               .claim = "two workers that wait for each other's lock are a deadlock",
               .min_cpus = 2,
               .run = called<take_both<Spinning>, workers::StallKind::deadlock>},
    test::Test{.name = "selftest.deadlock_of_sleepers_is_called_so",
               .claim = "two workers that sleep for each other's lock are a deadlock, not a lost wake-up",
               .min_cpus = 3,
               .needs = test::Backend::ipi,
               .run = called<take_both<Sleeping>, workers::StallKind::deadlock>},
    test::Test{.name = "selftest.sleeping_holder_is_called_so",
               .claim = "a worker that goes to sleep in its section is what holds the others up",
               .min_cpus = 3,
               .needs = test::Backend::ipi,
               .run =
                   called<keep_the_lock<Sleeping, faults::halt_with_interrupts_on>, workers::StallKind::holder_stuck>},
    test::Test{.name = "selftest.spinning_holder_is_called_so",
               .claim = "a worker that never leaves its section is what holds the others up",
               .min_cpus = 3,
               .needs = test::Backend::ipi,
               .run = called<keep_the_lock<Sleeping, spin>, workers::StallKind::holder_stuck>},
    test::Test{.name = "selftest.starvation_is_called_so",
               .claim = "a worker that never gets on while another does is starvation",
               .min_cpus = 2,
               .run = called<spin_beside_one_that_gets_on, workers::StallKind::starvation>},
    test::Test{.name = "selftest.endless_job_is_ended",
               .claim = "a job that makes progress for ever ends at its deadline",
               .run = deadline},
    test::Test{.name = "selftest.refused_instruction_is_survived",
               .claim = "an instruction that may fault is fixed up, and the fault is told from a return",
               .run =
                   [](test::TestContext& context) {
                       if (faults::survive_undefined_instruction())
                           context.pass();
                       else
                           context.fail("#UD under a fix-up was not noticed");
                   }},
};
constinit const test::TestGroup watchdog_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(watchdog_group);

} // namespace spinkick::selftest
