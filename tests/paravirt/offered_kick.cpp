// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: the kick that a hypervisor offers works. The proof was made at boot (arch/x86/paravirt/kick_proof.hpp);
// here it becomes a verdict. A kick that is offered and does not work is a known state of some machines, on which the
// other tests skip and name it; whoever forces it (pv=force) is told that it failed.
#include <array>

#include "arch/x86/paravirt/backends.hpp"
#include "arch/x86/paravirt/paravirt.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::paravirt_tests {
namespace {

template <class B>
void run(test::TestContext& context) {
    const auto& probe = paravirt::probe_of(paravirt::need_of<B>());
    if (paravirt::runs(probe.availability))
        return context.pass();
    if (probe.availability == paravirt::Availability::does_not_work && paravirt::is_forced())
        return context.fail("%s", probe.fact.c_str());
    context.skip("%s", probe.fact.c_str());
}

template <class B>
constexpr test::Test kTest{.name = "paravirt.offered_kick_works",
                           .backend = B::kName,
                           .claim = "a kick that the hypervisor offers comes back and wakes its target",
                           .min_cpus = 2,
                           .run = run<B>};

constexpr std::array kTests = {kTest<paravirt::Ipi>, kTest<paravirt::Kvm>, kTest<paravirt::Xen>};
constinit const test::TestGroup offered_kick_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(offered_kick_group);

} // namespace spinkick::paravirt_tests
