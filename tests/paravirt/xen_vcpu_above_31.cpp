// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: vCPUs from 32 on, which have no place in the shared page, sleep and are kicked like all others. Each of
// them kicks its neighbour on either side of the border, round by round.
#include "tests/paravirt/event_ports.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Xen;

constexpr std::uint32_t kLegacy = paravirt::xen_abi::kLegacyVcpus;
constexpr std::uint32_t kRounds = 4;

struct Shared {
    Turn go;
};
constinit Shared shared{};

/// The vCPU numbers of the workers: the first and the last one beyond the border, and the last one below it.
void work(std::uint32_t worker, void*) {
    const auto count = machine::cpu_count();
    const std::array parties = {kLegacy - 1, kLegacy, count - 1};
    // A ring over the three: each waits for its turn and kicks the next one.
    for (std::uint32_t round = 0; round < kRounds; ++round)
        for (std::uint32_t party = 0; party < parties.size(); ++party) {
            const auto turn = round * static_cast<std::uint32_t>(parties.size()) + party + 1;
            if (parties[party] != worker)
                continue;
            while (!shared.go.reached(turn)) {
                B::wait_unless([turn] { return shared.go.reached(turn); });
                B::relax();
            }
            workers::progress();
            shared.go.set(turn + 1);
            B::kick(workers::cpu_of(parties[(party + 1) % parties.size()]));
        }
}

void run(test::TestContext& context) {
    shared.go.reset();
    shared.go.set(1);
    const auto slept = total(sync::LockEvent::hibernate_stats);
    if (!run_workers<B>(context, machine::cpu_count(), work, nullptr, "a kick across vCPU 32 was lost"))
        return;
    if (total(sync::LockEvent::hibernate_stats) == slept)
        return context.error("nobody slept: the claim was not tried");
    context.pass();
}

constexpr std::array kTests = {test::Test{.name = "paravirt.vcpu_above_31_is_kicked",
                                          .backend = B::kName,
                                          .claim = "vCPUs with and without a place in the shared page kick each other",
                                          .min_cpus = kLegacy + 1,
                                          .needs = test::Backend::xen,
                                          .run = run}};
constinit const test::TestGroup xen_vcpu_above_31_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(xen_vcpu_above_31_group);

} // namespace spinkick::paravirt_tests
