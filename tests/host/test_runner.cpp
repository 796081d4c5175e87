// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/runner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kernel/crc32.hpp"
#include "tests/host/console_capture.hpp"
#include "tests/host/fake_machine.hpp"

namespace spinkick::test {
namespace {

using Strings = std::vector<std::string>;

std::vector<std::string> ran;     // running_test_name() as the bodies saw it
std::vector<std::uint64_t> seeds; // TestContext::seed() as the bodies saw it
int fails_in_round = 0;

void body_pass(TestContext& context) {
    ran.emplace_back(running_test_name());
    seeds.push_back(context.seed());
    EXPECT_EQ(running_test(), &context);
    context.pass();
}
void body_skip(TestContext& context) { context.skip("no PV_UNHALT: leaf 0x%08x EAX=0x%08x", 0x40000001u, 0x7bu); }
void body_error(TestContext& context) { context.error("cannot reach CPU %u", 3u); }
void body_fail(TestContext& context) { context.fail("lost %d wakeups", 2); }
void body_silent(TestContext&) {}
void body_stuck(TestContext& context) {
    context.pass();
    throw ThrownOut{};
}
void body_fails_later(TestContext& context) {
    ran.emplace_back(running_test_name());
    if (static_cast<int>(ran.size()) == fails_in_round)
        context.fail("broke");
    else
        context.pass();
}

Test make(std::string_view name, void (*run)(TestContext&), std::string_view lock = {}, std::string_view backend = {}) {
    return {.name = name, .lock = lock, .backend = backend, .claim = "A claim.", .run = run};
}

class Runner : public testing::Test {
  protected:
    void SetUp() override {
        fake_machine = {};
        ran.clear();
        seeds.clear();
        take_console_lines();
    }

    /// Runs `tests` under a command line and keeps the verdict and the lines.
    const Strings& run_tests(const std::vector<spinkick::test::Test>& tests, const std::string& words = "compact=1") {
        const TestGroup group{tests};
        const std::array<const TestGroup*, 1> groups{&group};
        CommandLine line;
        ErrorText error;
        EXPECT_TRUE(parse_command_line(words + " end=1", line, error)) << error.view();
        verdict = run(Registry(groups), line);
        lines = take_console_lines();
        check_verdict_lines();
        return lines;
    }

    /// The last three lines are one verdict line, its checksum is right and its word follows from its numbers.
    void check_verdict_lines() {
        ASSERT_GE(lines.size(), 3u);
        const std::string line = lines.back();
        EXPECT_EQ(lines[lines.size() - 2], line);
        EXPECT_EQ(lines[lines.size() - 3], line);
        char word[8] = {};
        unsigned plan = 0, pass = 0, fail = 0, error = 0, skip = 0, crc = 0;
        ASSERT_EQ(std::sscanf(line.c_str(), "spinkick: verdict: %7s plan=%u pass=%u fail=%u error=%u skip=%u crc=%8x",
                              word, &plan, &pass, &fail, &error, &skip, &crc),
                  7)
            << line;
        const std::size_t at = line.find("crc=");
        EXPECT_EQ(crc32(std::string_view(line).substr(0, at)), crc);
        EXPECT_EQ(line.size(), at + 4 + 8);
        EXPECT_EQ(word, std::string(name(verdict)));
        const std::string expected = fail != 0 ? "FAIL" : error != 0 ? "ERROR" : pass != 0 ? "PASS" : "SKIP";
        EXPECT_EQ(word, expected);
        lines.resize(lines.size() - 3);
        if (!lines.empty() && lines.back().starts_with("# entry to verdict: ")) // for people, right before the verdict
            lines.pop_back();
        counts =
            line.substr(std::string("spinkick: verdict: ").size(), at - std::string("spinkick: verdict: ").size() - 1);
    }

    /// Only the result lines.
    Strings results() const {
        Strings found;
        for (const auto& line : lines)
            if (line.starts_with("ok ") || line.starts_with("not ok "))
                found.push_back(line);
        return found;
    }

    Verdict verdict = Verdict::error;
    Strings lines;
    std::string counts;
};

TEST_F(Runner, WritesTheStreamOfTheContract) {
    run_tests({make("lock.excludes", body_pass, "tas", "native"), make("kick.kept", body_skip),
               make("smp.all", body_error), make("kick.wakes", body_fail)});
    EXPECT_EQ(lines, (Strings{
                         "KTAP version 1",
                         "# json {\"type\":\"context\"}",
                         "1..4",
                         "# begin 1 lock.excludes/tas/native",
                         "ok 1 lock.excludes/tas/native",
                         "# begin 2 kick.kept",
                         "ok 2 kick.kept # SKIP no PV_UNHALT: leaf 0x40000001 EAX=0x0000007b",
                         "# begin 3 smp.all",
                         "not ok 3 smp.all # ERROR cannot reach CPU 3",
                         "# begin 4 kick.wakes",
                         "not ok 4 kick.wakes # lost 2 wakeups",
                     }));
    EXPECT_EQ(counts, "FAIL plan=4 pass=1 fail=1 error=1 skip=1");
    EXPECT_EQ(ran, Strings{"lock.excludes/tas/native"});
    EXPECT_EQ(running_test_name(), "");
    EXPECT_EQ(running_test(), nullptr);
}

TEST_F(Runner, TheWordFollowsFromTheCounts) {
    run_tests({make("a.a", body_error), make("a.b", body_pass), make("a.c", body_skip)});
    EXPECT_EQ(counts, "ERROR plan=3 pass=1 fail=0 error=1 skip=1");
    run_tests({make("a.b", body_pass), make("a.c", body_skip)});
    EXPECT_EQ(counts, "PASS plan=2 pass=1 fail=0 error=0 skip=1");
    run_tests({make("a.c", body_skip)});
    EXPECT_EQ(counts, "SKIP plan=1 pass=0 fail=0 error=0 skip=1");
    run_tests({});
    EXPECT_EQ(counts, "SKIP plan=0 pass=0 fail=0 error=0 skip=0");
    EXPECT_EQ(lines, (Strings{"KTAP version 1", "# json {\"type\":\"context\"}", "1..0"}));
}

TEST_F(Runner, ATestThatSaysNothingIsAnError) {
    run_tests({make("a.silent", body_silent)});
    EXPECT_EQ(results(), Strings{"not ok 1 a.silent # ERROR said nothing: neither pass nor fail"});
}

TEST_F(Runner, ABodyThatIsThrownOutFailsAndTheSuiteGoesOn) {
    run_tests({make("a.stuck", body_stuck), make("a.next", body_pass)});
    EXPECT_EQ(results(), (Strings{"not ok 1 a.stuck # did not return: thrown out of its body", "ok 2 a.next"}));
}

TEST_F(Runner, SkipsByNameWithTheFactThatDecides) {
    fake_machine.cpus = 1;
    fake_machine.unavailable[Backend::kvm] = "no KVM leaves: 0x40000000 says TCGTCGTCGTCG";
    auto smp = make("smp.ipi", body_fail);
    smp.min_cpus = 2;
    auto kvm = make("lock.excludes", body_fail, "pv-queued", "kvm");
    kvm.needs = Backend::kvm;
    auto ipi = make("lock.excludes", body_pass, "pv-queued", "ipi");
    ipi.needs = Backend::ipi;
    run_tests({smp, kvm, ipi});
    EXPECT_EQ(results(), (Strings{"ok 1 smp.ipi # SKIP needs 2 CPUs, 1 online",
                                  "ok 2 lock.excludes/pv-queued/kvm # SKIP no KVM leaves: 0x40000000 says TCGTCGTCGTCG",
                                  "ok 3 lock.excludes/pv-queued/ipi"}));
}

TEST_F(Runner, AReasonCannotPassForADirective) {
    run_tests({make("a.a", [](TestContext& c) { c.fail("SKIP this"); }),
               make("a.b", [](TestContext& c) { c.fail("Todo"); }),
               make("a.c", [](TestContext& c) { c.fail("error of 3 ticks"); }),
               make("a.d", [](TestContext& c) { c.fail("line\nok 4 a.d"); }),
               make("a.e", [](TestContext& c) { c.fail("%s", ""); })});
    EXPECT_EQ(results(), (Strings{"not ok 1 a.a # failed: SKIP this", "not ok 2 a.b # failed: Todo",
                                  "not ok 3 a.c # failed: error of 3 ticks", "not ok 4 a.d # line?ok 4 a.d",
                                  "not ok 5 a.e # no reason given"}));
}

TEST_F(Runner, TheMostSevereReportWinsAndItsFirstReasonIsKept) {
    run_tests({make("a.a", [](TestContext& c) {
        c.pass();
        c.skip("s");
        c.fail("first");
        c.error("e");
        c.fail("second");
        c.pass();
    })});
    EXPECT_EQ(results(), Strings{"not ok 1 a.a # first"});
    EXPECT_EQ(counts, "FAIL plan=1 pass=0 fail=1 error=0 skip=0");
}

TEST_F(Runner, DurationsAreRecordsUnlessCompact) {
    run_tests({make("a.a", body_pass), make("a.b", body_skip)}, "");
    std::vector<nlohmann::json> records;
    for (const auto& line : lines)
        if (line.starts_with("# json {\"type\":\"test\""))
            records.push_back(nlohmann::json::parse(line.substr(7)));
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0], (nlohmann::json{{"type", "test"}, {"name", "a.a"}, {"ns", 1000}, {"status", "pass"}}));
    EXPECT_EQ(records[1], (nlohmann::json{{"type", "test"}, {"name", "a.b"}, {"ns", 1000}, {"status", "skip"}}));
}

std::vector<spinkick::test::Test> matrix() {
    auto crash = make("selftest.panic", body_pass);
    crash.on_request = true;
    return {make("lock.excludes", body_pass, "tas", "native"),
            make("lock.excludes", body_pass, "pv-queued", "ipi"),
            make("lock.excludes", body_pass, "pv-queued", "kvm"),
            make("lock.try_lock", body_pass, "tas", "native"),
            make("smp.online", body_pass),
            crash};
}

TEST_F(Runner, SelectsByPatterns) {
    const auto selected = [&](const std::string& words) {
        run_tests(matrix(), words + " compact=1");
        return std::exchange(ran, {});
    };
    EXPECT_EQ(selected("").size(), 5u); // all but the one on request
    EXPECT_EQ(selected("tests=smp.*"), Strings{"smp.online"});
    EXPECT_EQ(selected("tests=lock.try_lock"), Strings{"lock.try_lock/tas/native"});
    EXPECT_EQ(selected("tests=lock.excludes/*/kvm,smp.online"), (Strings{"lock.excludes/pv-queued/kvm", "smp.online"}));
    EXPECT_EQ(selected("locks=pv-*"),
              (Strings{"lock.excludes/pv-queued/ipi", "lock.excludes/pv-queued/kvm", "smp.online"}));
    EXPECT_EQ(selected("locks=pv-queued/kvm"), (Strings{"lock.excludes/pv-queued/kvm", "smp.online"}));
    EXPECT_EQ(selected("skip=lock.*"), Strings{"smp.online"});
    EXPECT_EQ(selected("tests=lock.* skip=*/native locks=pv-queued"),
              (Strings{"lock.excludes/pv-queued/ipi", "lock.excludes/pv-queued/kvm"}));
    EXPECT_EQ(selected("tests=selftest.panic"), Strings{"selftest.panic"});
    EXPECT_EQ(selected("tests=* "), selected(""));
    EXPECT_EQ(selected("skip=*").size(), 0u);
    EXPECT_EQ(counts, "SKIP plan=0 pass=0 fail=0 error=0 skip=0");
}

TEST_F(Runner, APatternThatMatchesNothingIsAnErrorThatNamesIt) {
    const auto error = [&](const std::string& words) {
        run_tests(matrix(), words);
        EXPECT_EQ(counts, "ERROR plan=0 pass=0 fail=0 error=1 skip=0");
        EXPECT_TRUE(ran.empty());
        return lines.size() == 1 ? lines[0] : "more than one line";
    };
    const std::string nothing = ": matches nothing in this image; the word list shows what there is";
    EXPECT_EQ(error("tests=smp.*,lokc.*"), "spinkick: error: tests=lokc.*" + nothing);
    EXPECT_EQ(error("skip=nope"), "spinkick: error: skip=nope" + nothing);
    EXPECT_EQ(error("locks=pv-tikcet"), "spinkick: error: locks=pv-tikcet" + nothing);
    EXPECT_EQ(error("tests=selftest.*"),
              "spinkick: error: tests=selftest.*: matches only tests that must be named in full, without * or ?");
}

TEST_F(Runner, ADuplicateNameIsAnErrorAtTheStart) {
    run_tests({make("a.a", body_pass), make("a.b", body_pass, "tas"), make("a.b", body_pass, {}, "tas")});
    EXPECT_EQ(lines, Strings{"spinkick: error: test a.b/tas: is registered twice; names must be unique"});
    EXPECT_EQ(counts, "ERROR plan=0 pass=0 fail=0 error=1 skip=0");
    EXPECT_TRUE(ran.empty());
}

TEST_F(Runner, AnIllFormedTestIsAnErrorAtTheStart) {
    const std::string longest = "a." + std::string(kNameBytes - 2, 'x');
    const std::string too_long = longest + "y";
    run_tests({make(longest, body_pass)});
    EXPECT_EQ(counts, "PASS plan=1 pass=1 fail=0 error=0 skip=0");
    for (const auto& bad :
         {make("nodot", body_pass), make("", body_pass), make("a.", body_pass), make(".a", body_pass),
          make("a.b c", body_pass), make("a.b/c", body_pass), make("a.b#", body_pass), make("a.b", nullptr),
          make("a.b", body_pass, "t*s"), make("a.b", body_pass, "tas", "k vm"), make(too_long, body_pass)}) {
        run_tests({bad});
        ASSERT_EQ(lines.size(), 1u) << bad.name;
        EXPECT_TRUE(lines[0].starts_with("spinkick: error: test ")) << lines[0];
        EXPECT_EQ(counts, "ERROR plan=0 pass=0 fail=0 error=1 skip=0");
    }
}

TEST_F(Runner, TooManyTestsAreAnError) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i <= kMostTests; ++i)
        names.push_back("a.t" + std::to_string(i));
    std::vector<spinkick::test::Test> tests;
    for (const auto& text : names)
        tests.push_back(make(text, body_pass));
    run_tests(tests);
    EXPECT_EQ(lines, Strings{"spinkick: error: test a.t1024: is one more than the 1024 that an image can hold"});
    tests.pop_back();
    run_tests(tests);
    EXPECT_EQ(counts, "PASS plan=1024 pass=1024 fail=0 error=0 skip=0");
}

TEST_F(Runner, TheListIsARunOfOneTest) {
    run_tests(matrix(), "list");
    EXPECT_EQ(
        lines,
        (Strings{"KTAP version 1", "# json {\"type\":\"context\"}", "1..1", "# begin 1 runner.list",
                 "# test lock.excludes/tas/native: A claim.", "# test lock.excludes/pv-queued/ipi: A claim.",
                 "# test lock.excludes/pv-queued/kvm: A claim.", "# test lock.try_lock/tas/native: A claim.",
                 "# test smp.online: A claim.", "# test selftest.panic: A claim. (on request)", "ok 1 runner.list"}));
    EXPECT_EQ(counts, "PASS plan=1 pass=1 fail=0 error=0 skip=0");
    EXPECT_TRUE(ran.empty());
    run_tests(matrix(), "list tests=smp.*");
    EXPECT_EQ(lines.size(), 6u);
}

TEST_F(Runner, RepeatRunsBodiesUntilOneDoesNotPass) {
    run_tests({make("a.a", body_pass), make("bench.contention", body_pass)}, "repeat=5 compact=1");
    EXPECT_EQ(ran, (Strings{"a.a", "a.a", "a.a", "a.a", "a.a", "bench.contention"}));
    EXPECT_EQ(counts, "PASS plan=2 pass=2 fail=0 error=0 skip=0");
    ran.clear();
    fails_in_round = 3;
    run_tests({make("a.a", body_fails_later)}, "repeat=5 compact=1");
    EXPECT_EQ(ran.size(), 3u);
    EXPECT_EQ(results(), Strings{"not ok 1 a.a # round 3 of 5: broke"});
}

TEST_F(Runner, SeedsDependOnRunNameAndRoundOnly) {
    const auto seeds_of = [&](const std::vector<spinkick::test::Test>& tests, const std::string& words) {
        seeds.clear();
        run_tests(tests, words);
        return seeds;
    };
    const auto alone = seeds_of({make("a.b", body_pass)}, "seed=7");
    const auto both = seeds_of({make("a.a", body_pass), make("a.b", body_pass)}, "seed=7");
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[1], alone[0]);
    EXPECT_NE(both[0], both[1]);
    EXPECT_NE(seeds_of({make("a.b", body_pass)}, "seed=8")[0], alone[0]);
    const auto rounds = seeds_of({make("a.b", body_pass)}, "seed=7 repeat=2");
    EXPECT_EQ(rounds[0], alone[0]);
    EXPECT_NE(rounds[1], rounds[0]);
}

TEST(TestContext, ReportsFromManyThreadsKeepOneWholeReason) {
    for (int round = 0; round < 200; ++round) {
        auto context = std::make_unique<TestContext>(1);
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&context, i] {
                context->pass();
                context->skip("skip %d %0100d", i, i);
                context->error("error %d %0100d", i, i);
                context->fail("fail %d %0100d", i, i);
            });
        }
        for (auto& thread : threads)
            thread.join();
        EXPECT_EQ(context->status(), Status::fail);
        int one = -1;
        int other = -2;
        ASSERT_EQ(std::sscanf(context->reason(), "fail %d %d", &one, &other), 2) << context->reason();
        EXPECT_EQ(one, other);
    }
}

TEST(TestContext, LongReasonsAreCutAndMarked) {
    TestContext context(1);
    context.fail("%s", std::string(1000, 'x').c_str());
    EXPECT_TRUE(std::string_view(context.reason()).ends_with("x..."));
    EXPECT_EQ(std::string_view(context.reason()).size(), 199u);
    context.restart(2);
    EXPECT_EQ(context.status(), Status::none);
    EXPECT_STREQ(context.reason(), "");
    EXPECT_EQ(context.seed(), 2u);
}

TEST(TestContext, RegistrationPutsAPointerIntoItsSection) {
    static constexpr spinkick::test::Test kTests[] = {
        {.name = "a.a", .lock = {}, .backend = {}, .claim = "", .run = body_pass}};
    static constexpr TestGroup kGroup{kTests};
    SPINKICK_REGISTER_TESTS(kGroup);
    EXPECT_EQ(registered_kGroup, &kGroup);
}

} // namespace
} // namespace spinkick::test
