// SPDX-License-Identifier: BSD-2-Clause
//
// smp.same_features: every CPU has the features of the boot CPU, by whose answers the kernel has chosen its code.
#include <array>

#include "arch/x86/cpu_features.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::smp_tests {
namespace {

void run(test::TestContext& context) {
    const auto features = x86::cpu_features::summary();
    if (features.differing == 0)
        return context.pass();
    const auto& difference = features.difference;
    context.error("%u CPUs differ from the boot CPU: CPU %u has CPUID %s=0x%08x, not 0x%08x", features.differing,
                  raw(features.first), x86::cpu_features::kWords[difference.word].name, difference.other,
                  difference.boot);
}

constexpr std::array kTests = {test::Test{.name = "smp.same_features",
                                          .claim = "CPUID gives every CPU the features of the boot CPU",
                                          .min_cpus = 2,
                                          .run = run}};
constinit const test::TestGroup features_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(features_group);

} // namespace spinkick::smp_tests
