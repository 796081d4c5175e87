// SPDX-License-Identifier: BSD-2-Clause
//
// smp: every CPU that the machine's tables offer is there, runs what it is given, and reaches every other by interrupt.
#include <array>
#include <atomic>

#include "kernel/clock.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::smp_tests {
namespace {

constinit std::array<std::atomic<std::uint32_t>, kMaxCpus> hits{};

void clear_hits() noexcept {
    for (auto& hit : hits)
        hit.store(0, std::memory_order_relaxed); // nobody else runs
}

void all_online(test::TestContext& context) {
    if (machine::cpus_found() != machine::cpu_count())
        return context.error("%u of %u CPUs are online", machine::cpu_count(), machine::cpus_found());
    clear_hits();
    workers::Job job;
    job.count = workers::available();
    job.body = [](std::uint32_t, void*) { hits[index(machine::this_cpu())].fetch_add(1, std::memory_order_relaxed); };
    const auto outcome = workers::run(job);
    if (!outcome.all_completed())
        return context.fail("%u of %u CPUs ran", outcome.completed, outcome.started);
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        const auto ran = hits[index(cpu)].load(std::memory_order_relaxed);
        if (ran != 1)
            return context.fail("CPU %u ran the body %u times", raw(cpu), ran);
    }
    context.pass();
}

struct Matrix {
    std::atomic<std::uint32_t> lost{0};
    std::atomic<std::uint32_t> from{0}, to{0};
};
constinit Matrix matrix{};

/// One CPU sends to every other, one at a time: two at once would merge in the target's IRR.
void send_to_all(std::uint32_t, void*) {
    const auto self = machine::this_cpu();
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
        const auto target = machine::online_cpu(n);
        if (target == self)
            continue;
        const auto before = hits[index(target)].load(std::memory_order_relaxed);
        machine::send_test_interrupt(target);
        const clock::Deadline deadline(seconds(2));
        while (hits[index(target)].load(std::memory_order_acquire) == before) { // pairs with the handler's release
            if (deadline.passed()) {
                matrix.from.store(raw(self), std::memory_order_relaxed); // read after the job has ended
                matrix.to.store(raw(target), std::memory_order_relaxed);
                matrix.lost.fetch_add(1, std::memory_order_relaxed);
                break;
            }
            machine::relax();
        }
        workers::progress();
    }
}

void ipi_matrix(test::TestContext& context) {
    clear_hits();
    matrix.lost.store(0, std::memory_order_relaxed);
    machine::set_test_interrupt(
        []() noexcept { hits[index(machine::this_cpu())].fetch_add(1, std::memory_order_release); });
    const auto cpus = machine::cpu_count();
    for (std::uint32_t sender = 0; sender < cpus; ++sender) {
        workers::Job job;
        job.first = sender;
        job.body = send_to_all;
        if (!workers::run(job).all_completed())
            return context.fail("CPU %u stalled as sender", raw(machine::online_cpu(sender)));
    }
    if (matrix.lost.load(std::memory_order_relaxed) != 0)
        return context.fail("%u interrupts did not arrive, the last from CPU %u to CPU %u",
                            matrix.lost.load(std::memory_order_relaxed), matrix.from.load(std::memory_order_relaxed),
                            matrix.to.load(std::memory_order_relaxed));
    for (std::uint32_t n = 0; n < cpus; ++n) {
        const auto got = hits[index(machine::online_cpu(n))].load(std::memory_order_relaxed);
        if (got != cpus - 1)
            return context.fail("CPU %u took %u interrupts, %u were sent to it", raw(machine::online_cpu(n)), got,
                                cpus - 1);
    }
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "smp.all_online",
               .claim = "every CPU in the machine's tables is online and runs work",
               .run = all_online},
    test::Test{.name = "smp.every_cpu_reaches_every_other",
               .claim = "an interrupt from any CPU to any other arrives exactly once",
               .min_cpus = 2,
               .run = ipi_matrix},
};
constinit const test::TestGroup online_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(online_group);

} // namespace spinkick::smp_tests
