// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/runner.hpp"

#include <algorithm>
#include <atomic>

#include "kernel/clock.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/splitmix64.hpp"
#include "kernel/test/environment.hpp"
#include "kernel/test/selection.hpp"
#include "kernel/text.hpp"

namespace spinkick::test {
namespace {

using namespace std::string_view_literals;

/// Benches have repetitions of their own (repeat= is their number), so that locks can be interleaved over them.
constexpr std::string_view kBenchSuite = "bench.";

bool is_bench(const Test& test) noexcept {
    return test.name.size() > kBenchSuite.size() &&
           std::equal(kBenchSuite.begin(), kBenchSuite.end(), test.name.begin());
}

/// In static memory, not on the runner's stack: a watchdog on another CPU may look while a test ends.
struct Running {
    TestContext context{0};
    char name[kNameBytes + 1] = {};
    std::atomic<std::size_t> name_size{0}; ///< 0: no test runs
    const Test* test = nullptr;
    bool completed = false;
};
constinit Running running;

constinit const Test* selected[kMostTests];

constexpr std::uint64_t test_seed(std::uint64_t run_seed, std::uint64_t name_hash, std::uint32_t round) noexcept {
    return splitmix64(splitmix64(run_seed ^ name_hash) + round);
}

bool lacks_something(const Test& test, ErrorText& fact) noexcept {
    const std::uint32_t cpus = machine::cpu_count();
    if (cpus < test.min_cpus) {
        fact.set("needs %u CPUs, %u online", test.min_cpus, cpus);
        return true;
    }
    if (test.needs == Backend::any)
        return false;
    const std::string_view reason = backend_unavailable_reason(test.needs);
    if (reason.empty())
        return false;
    fact.set("%.*s", static_cast<int>(std::min<std::size_t>(reason.size(), 190)), reason.data());
    return true;
}

/// Runs the body once, as work of this CPU, so that a body that never returns can be thrown out.
void run_body() noexcept {
    running.completed = false;
    machine::run_here({
        .fn = [](void*) { running.test->run(running.context); },
        .argument = nullptr,
        .finished = [](void*, bool completed) noexcept { running.completed = completed; },
    });
    if (!running.completed)
        running.context.fail("did not return: thrown out of its body");
}

struct Outcome {
    Status status = Status::error;
    ErrorText reason;
    Nanoseconds elapsed;
};

void run_rounds(const Test& test, const TestName& name, const CommandLine& line, Outcome& outcome) noexcept {
    const std::uint32_t rounds = is_bench(test) || line.repeat == 0 ? 1 : line.repeat;

    running.test = &test;
    std::copy(name.view().begin(), name.view().end(), running.name);
    const Nanoseconds start = clock::now();
    std::uint32_t round = 0;
    do {
        running.context.restart(test_seed(line.seed, name.hash(), round));
        // release: pairs with the acquire in running_test_name(): name and context are ready.
        running.name_size.store(name.view().size(), std::memory_order_release);
        run_body();
        running.name_size.store(0, std::memory_order_release);
        ++round;
    } while (round < rounds && running.context.status() == Status::pass);
    outcome.elapsed = clock::now() - start;

    outcome.status = running.context.status();
    const bool silent = outcome.status == Status::none;
    if (silent)
        outcome.status = Status::error;
    const char* const reason = silent ? "said nothing: neither pass nor fail" : running.context.reason();
    if (rounds > 1 && outcome.status != Status::pass)
        outcome.reason.set("round %u of %u: %s", round, rounds, reason);
    else
        outcome.reason.set("%s", reason);
}

void run_one(std::uint32_t number, const Test& test, const CommandLine& line, Counts& counts) noexcept {
    const TestName name(test);
    Outcome outcome;
    if (lacks_something(test, outcome.reason)) {
        outcome.status = Status::skip;
    } else {
        report_begin(number, name.view()); // a skip takes no time: its result alone is enough
        run_rounds(test, name, line, outcome);
        if (!line.compact)
            report_duration(name.view(), outcome.status, outcome.elapsed);
    }
    report_result(number, name.view(), outcome.status, outcome.reason.view());
    counts.add(outcome.status);
}

/// A list is a run of one test, whose claim is that the list is whole: so its verdict follows the same rules.
Verdict list(std::span<const Test* const> tests) noexcept {
    constexpr std::string_view kName = "runner.list"sv;
    report_header();
    report_plan(1);
    report_begin(1, kName);
    for (const Test* test : tests) {
        const TestName name(*test);
        log("# test %s: %.*s%s", name.view().data(), static_cast<int>(std::min<std::size_t>(test->claim.size(), 300)),
            test->claim.data(), test->on_request ? " (on request)" : "");
    }
    Counts counts;
    counts.plan = 1;
    counts.add(Status::pass);
    report_result(1, kName, Status::pass, ""sv);
    return report_verdict(counts);
}

} // namespace

namespace {

/// Sets `selected`.
std::span<const Test* const> select(const Registry& registry, const CommandLine& line) noexcept {
    std::uint32_t count = 0;
    (void)registry.for_each([&](const Test& test) {
        // A list without tests= shows what can be asked for, so also what runs on request only.
        const bool on_request = line.list && line.tests.empty() && test.on_request;
        if (on_request || is_selected(test, line))
            selected[count++] = &test;
        return true;
    });
    return {selected, count};
}

} // namespace

Verdict run(const Registry& registry, const CommandLine& line) noexcept {
    ErrorText error;
    if (!registry.check(error) || !check_patterns(registry, line, error))
        return report_bad_input(error.view());
    const auto tests = select(registry, line);
    if (line.list)
        return list(tests);

    Counts counts;
    counts.plan = static_cast<std::uint32_t>(tests.size());
    report_header();
    report_plan(counts.plan);
    for (std::uint32_t i = 0; i < counts.plan; ++i)
        run_one(i + 1, *tests[i], line, counts);
    report_machine_faults();
    emit_hypercall_record();
    // From the kernel's entry: what a run costs apart from its tests shows in one that has none.
    log("# entry to verdict: %llu us", static_cast<unsigned long long>(clock::now().value / 1'000));
    return report_verdict(counts);
}

bool run_more(const Registry& registry, const CommandLine& line, Counts& counts, ErrorText& error) noexcept {
    if (!check_patterns(registry, line, error))
        return false;
    for (const auto* test : select(registry, line))
        run_one(++counts.plan, *test, line, counts);
    return true;
}

std::string_view running_test_name() noexcept {
    // acquire: pairs with the release in run_rounds().
    return {running.name, running.name_size.load(std::memory_order_acquire)};
}

TestContext* running_test() noexcept {
    return running.name_size.load(std::memory_order_acquire) != 0 ? &running.context : nullptr;
}

} // namespace spinkick::test
