// SPDX-License-Identifier: BSD-2-Clause
//
// selftest: the ways in which a run may end, each on request. They show that the report, the exit codes and the runner
// tell a failure, an error, a crash and a hang from each other; none of them is part of a normal run.
#include <array>
#include <limits>

#include "kernel/machine.hpp"
#include "kernel/panic.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/faults.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::selftest {
namespace {

void fail(test::TestContext& context) { context.fail("on request"); }
void error(test::TestContext& context) { context.error("on request"); }
void skip(test::TestContext& context) { context.skip("on request"); }
void silent(test::TestContext&) {}
void give_up(test::TestContext&) { panic("on request"); }
void triple_fault(test::TestContext&) { faults::triple_fault(); }
void stack_overflow(test::TestContext&) { faults::overflow_stack(); }
void page_fault(test::TestContext&) { faults::read_unmapped(); }

void undefined_behaviour(test::TestContext& context) {
    volatile int most = std::numeric_limits<int>::max(); // volatile: the compiler must not know the sum
    most = most + 1;
    context.skip("a signed overflow does not trap: the preset ubsan builds the image in which it does");
}

template <auto Stay>
void hang(test::TestContext&) {
    workers::Job job;
    job.count = workers::available();
    job.body = [](std::uint32_t, void*) { Stay(); };
    (void)workers::run(job);
}

constexpr std::array kTests = {
    test::Test{.name = "selftest.fail", .claim = "a failing test makes the run fail", .run = fail, .on_request = true},
    test::Test{
        .name = "selftest.error", .claim = "an erring test makes the run an error", .run = error, .on_request = true},
    test::Test{
        .name = "selftest.skip", .claim = "a run in which all is skipped is no pass", .run = skip, .on_request = true},
    test::Test{
        .name = "selftest.silent", .claim = "a test that says nothing is an error", .run = silent, .on_request = true},
    test::Test{
        .name = "selftest.panic", .claim = "a panic ends the run as a crash", .run = give_up, .on_request = true},
    test::Test{.name = "selftest.triple_fault",
               .claim = "a reset before the verdict ends the run as a crash",
               .run = triple_fault,
               .on_request = true},
    test::Test{.name = "selftest.stack_overflow",
               .claim = "running over a stack ends in a panic with a name",
               .run = stack_overflow,
               .on_request = true},
    test::Test{.name = "selftest.page_fault",
               .claim = "an access to nothing ends in a panic with registers and a backtrace",
               .run = page_fault,
               .on_request = true},
    test::Test{.name = "selftest.undefined_behaviour",
               .claim = "undefined behaviour ends the preset ubsan's image in a panic",
               .run = undefined_behaviour,
               .on_request = true},
    test::Test{.name = "selftest.hang",
               .claim = "all CPUs stuck with interrupts off end the run as a hang, from outside",
               .run = hang<faults::spin_with_interrupts_off>,
               .on_request = true},
    test::Test{.name = "selftest.hang_asleep",
               .claim = "all CPUs halted with interrupts off end the run as a hang, from outside",
               .run = hang<faults::halt_with_interrupts_off>,
               .on_request = true},
};
constinit const test::TestGroup endings{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(endings);

} // namespace spinkick::selftest
