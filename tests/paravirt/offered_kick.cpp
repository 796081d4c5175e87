// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: the kick that a hypervisor offers works. The proof was made at boot (arch/x86/paravirt/kick_proof.hpp);
// here it becomes a verdict. One way of several may be known not to work (a host without hypercalls, whose remote-read
// IPI does): that is a line at boot. Where a service is offered and none of its ways works, the hypervisor is wrong;
// the other tests of that back end skip with the fact, and this one fails with it.
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
    if (probe.availability == paravirt::Availability::does_not_work)
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
