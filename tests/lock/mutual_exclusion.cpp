// SPDX-License-Identifier: BSD-2-Clause
//
// lock.mutual_exclusion: at most one CPU is between lock() and unlock(), and sees all that the holder before wrote.
//
// Ten stores: the holder increments ten words one after the other and looks after each that nobody else changed any,
// then decrements them the same way. A torn value: a record of several words that belong together is rewritten and must
// be whole for the next holder. One shared counter alone would miss a lock that excludes "nearly": it comes out right
// by luck.
#include "tests/lock/lock_test.hpp"

namespace spinkick::lock_tests {
namespace {

constexpr std::size_t kWords = 10;
constexpr std::uint32_t kRounds = 3000;
constexpr Nanoseconds kTime = milliseconds(400);

/// Shared by the workers of one run. Relaxed accesses: the lock alone has to order them, and the compiler must not.
struct Section {
    std::array<std::atomic<std::uint64_t>, kWords> words{};
    std::array<std::atomic<std::uint64_t>, 4> record{};
    std::atomic<std::uint64_t> violations{0};
    std::atomic<std::uint64_t> acquisitions{0};
    bool mask_interrupts = false;
};
constinit Section section{};

constexpr std::uint64_t spread(std::uint64_t value, std::size_t i) noexcept {
    return value * (2 * i + 0x9e3779b97f4a7c15ull);
}

std::uint64_t check_ten(Section& s) noexcept {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
        s.words[i].store(s.words[i].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        for (std::size_t j = 0; j < kWords; ++j)
            wrong += s.words[j].load(std::memory_order_relaxed) != (j <= i ? 1u : 0u);
    }
    for (std::size_t i = 0; i < kWords; ++i) {
        s.words[i].store(s.words[i].load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        for (std::size_t j = 0; j < kWords; ++j)
            wrong += s.words[j].load(std::memory_order_relaxed) != (j <= i ? 0u : 1u);
    }
    return wrong;
}

std::uint64_t check_torn(Section& s, std::uint64_t value) noexcept {
    std::uint64_t wrong = 0;
    const auto base = s.record[0].load(std::memory_order_relaxed);
    for (std::size_t i = 1; i < s.record.size(); ++i)
        wrong += s.record[i].load(std::memory_order_relaxed) != spread(base, i);
    s.record[0].store(value, std::memory_order_relaxed);
    for (std::size_t i = 1; i < s.record.size(); ++i)
        s.record[i].store(spread(value, i), std::memory_order_relaxed);
    return wrong;
}

template <class L>
void work(std::uint32_t worker, void* argument) {
    auto& s = *static_cast<Section*>(argument);
    using Machine = typename L::Machine;
    std::uint64_t wrong = 0, done = 0;
    // Once in any case: on a busy host all of the duration may have passed before the first round.
    while (done == 0 || (done < kRounds && !workers::over())) {
        typename Machine::InterruptState mask{};
        // Of two CPUs the boot CPU keeps its interrupts: its timer is what notices a stall.
        const bool masks = s.mask_interrupts && (machine::cpu_count() >= 3 || worker != 0);
        if (masks)
            mask = Machine::disable_interrupts();
        lock_under_test<L>.lock();
        wrong += check_ten(s) + check_torn(s, (std::uint64_t{worker} << 32) + done);
        lock_under_test<L>.unlock();
        if (masks)
            Machine::restore_interrupts(mask);
        ++done;
        workers::progress();
    }
    s.violations.fetch_add(wrong, std::memory_order_relaxed); // summed up after all workers have ended
    s.acquisitions.fetch_add(done, std::memory_order_relaxed);
}

void clear(bool mask_interrupts) noexcept {
    for (auto& word : section.words)
        word.store(0, std::memory_order_relaxed); // no worker runs
    for (auto& word : section.record)
        word.store(0, std::memory_order_relaxed);
    section.violations.store(0, std::memory_order_relaxed);
    section.acquisitions.store(0, std::memory_order_relaxed);
    section.mask_interrupts = mask_interrupts;
}

template <class L>
bool hold(test::TestContext& context, bool mask_interrupts) noexcept {
    clear(mask_interrupts);
    // With interrupts masked the boot CPU keeps out where it can: its timer is what notices a stall.
    const std::uint32_t first = mask_interrupts && machine::cpu_count() >= 3 ? 1 : 0;
    const auto count = worker_count(first);
    if (!contend<L>(context, count, first, work<L>, &section, kTime))
        return false;
    const auto violations = section.violations.load(std::memory_order_relaxed);
    const auto acquisitions = section.acquisitions.load(std::memory_order_relaxed);
    if (violations != 0)
        context.fail("%llu violations in %llu acquisitions by %u CPUs, interrupts %s",
                     static_cast<unsigned long long>(violations), static_cast<unsigned long long>(acquisitions), count,
                     mask_interrupts ? "off" : "on");
    if (acquisitions < count)
        context.error("only %llu acquisitions", static_cast<unsigned long long>(acquisitions));
    return violations == 0;
}

template <class L>
void run(test::TestContext& context) {
    if (hold<L>(context, false) && hold<L>(context, true))
        context.pass();
}

/// selftest: the lock that does not exclude must be caught by the same checks.
template <class L>
void run_broken(test::TestContext& context) {
    test::TestContext inner(context.seed());
    const clock::Deadline patience(seconds(20)); // on a loaded host two vCPUs may hardly ever run at the same time
    while (inner.status() != test::Status::fail && !patience.passed())
        (void)hold<L>(inner, false);
    if (inner.status() == test::Status::fail)
        context.pass();
    else
        context.fail("the checks did not notice a lock that does not exclude");
}

constexpr auto kTests = table_of(
    []<class L>() {
        return test::Test{.name = "lock.mutual_exclusion",
                          .lock = L::kName,
                          .backend = L::Machine::kName,
                          .claim = "at most one CPU is between lock() and unlock(), with interrupts on and off",
                          .min_cpus = 2,
                          .needs = paravirt::need_of<typename L::Machine>(),
                          .run = run<L>};
    },
    ExcludingLocks{});

using Broken = sync::BrokenLock<paravirt::Native>;
constexpr std::array kSelfTests = {test::Test{.name = "selftest.broken_lock_is_caught",
                                              .claim = "the exclusion checks notice a lock that does not exclude",
                                              .min_cpus = 2,
                                              .run = run_broken<Broken>}};

constinit const test::TestGroup group{kTests};
constinit const test::TestGroup self_group{kSelfTests};

} // namespace

SPINKICK_REGISTER_TESTS(group);
SPINKICK_REGISTER_TESTS(self_group);

} // namespace spinkick::lock_tests
