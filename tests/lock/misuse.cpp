// SPDX-License-Identifier: BSD-2-Clause
//
// lock.misuse: the debug lock notices each kind of misuse, once, and is whole afterwards.
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

using Debug = sync::DebugLock<paravirt::Native>;
using sync::LockMisuse;

constexpr std::array kKinds = {LockMisuse::recursion, LockMisuse::unlock_by_other, LockMisuse::unlock_of_free};
constexpr std::array kNames = {"recursion", "unlock by another CPU", "unlock of a free lock"};

void run(test::TestContext& context) {
    auto& lock = lock_under_test<Debug>;
    std::array<std::uint32_t, kKinds.size()> before{};
    for (std::size_t i = 0; i < kKinds.size(); ++i)
        before[i] = Debug::misuses(kKinds[i]);

    lock.unlock(); // free
    lock.lock();
    lock.lock(); // recursion
    workers::Job job;
    job.first = 1;
    job.body = [](std::uint32_t, void*) { lock_under_test<Debug>.unlock(); }; // by another CPU
    if (!workers::run(job).all_completed())
        return context.error("the other CPU did not come back");

    for (std::size_t i = 0; i < kKinds.size(); ++i)
        if (const auto noticed = Debug::misuses(kKinds[i]) - before[i]; noticed != 1)
            return context.fail("%s noticed %u times, expected once", kNames[i], noticed);
    if (!lock.try_lock())
        return context.fail("the lock is not free after the misuse");
    lock.unlock();
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "lock.misuse",
               .lock = Debug::kName,
               .backend = paravirt::Native::kName,
               .claim = "recursion, unlock by another CPU and unlock of a free lock are noticed, once each",
               .min_cpus = 2,
               .run = run}};
constinit const test::TestGroup misuse_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(misuse_group);

} // namespace spinkick::lock_tests
