// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/monitor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kernel/options.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/tuning.hpp"
#include "kernel/test/line_reader.hpp"
#include "tests/host/console_capture.hpp"
#include "tests/host/fake_machine.hpp"

namespace spinkick::test {
namespace {

std::string lines_of(const std::vector<std::string>& bytes) {
    LineReader reader;
    std::string all;
    for (const auto& piece : bytes)
        for (const char byte : piece)
            if (reader.take(byte))
                all += std::string{reader.is_too_long() ? "!" : ""} + std::string{reader.line()} + ";";
    return all;
}

TEST(LineReader, TakesTheEndsOfEveryTerminal) { EXPECT_EQ(lines_of({"a\nb\rc\r\nd\n\r"}), "a;b;c;d;"); }

TEST(LineReader, ObeysBackspaceAndIgnoresNoise) {
    EXPECT_EQ(lines_of({"helo\b\blp\x7fp\n"}), "help;");
    EXPECT_EQ(lines_of({"\b\b\x7fx\n"}), "x;") << "more than there is";
    EXPECT_EQ(lines_of({"nonsense\x15stats\n"}), "stats;");
    EXPECT_EQ(lines_of({std::string{"a\0\x1b\xff"
                                    "b\n",
                                    6}}),
              "ab;");
}

TEST(LineReader, ATooLongLineIsOneAndTheNextIsWhole) {
    EXPECT_EQ(lines_of({std::string(LineReader::kMost, 'x'), "\n"}), std::string(LineReader::kMost, 'x') + ";");
    EXPECT_EQ(lines_of({std::string(LineReader::kMost + 1, 'x'), "\nquit\n"}),
              "!" + std::string(LineReader::kMost, 'x') + ";quit;");
}

std::uint64_t threshold_in_test = 0, duration_in_test = 0;
void see_settings(TestContext& context) {
    threshold_in_test = sync::tuning.spin_threshold.load();
    duration_in_test = options::command_line().duration_ms;
    context.pass();
}
void fail(TestContext& context) { context.fail("broken"); }
std::string typed_meanwhile;
/// As a job does: somebody types meanwhile, and the watchdog looks.
void meanwhile(TestContext& context) {
    fake_machine.console_input.insert(0, typed_meanwhile);
    for (int looks = 0; looks < 5; ++looks)
        fake_machine.look_hook();
    context.pass();
    threshold_in_test = sync::tuning.spin_threshold.load();
}

constexpr std::array kMonitored = {
    spinkick::test::Test{
        .name = "lock.sees", .lock = "tas", .backend = "native", .claim = "It sees.", .run = see_settings},
    spinkick::test::Test{.name = "lock.fails", .lock = "tas", .backend = "native", .claim = "It fails.", .run = fail},
    spinkick::test::Test{.name = "lock.sees",
                         .lock = "pv",
                         .backend = "kvm",
                         .claim = "It sees.",
                         .needs = Backend::kvm,
                         .run = see_settings},
    spinkick::test::Test{.name = "smp.meanwhile", .claim = "It lasts.", .run = meanwhile},
    spinkick::test::Test{.name = "selftest.asked", .claim = "On request.", .run = fail, .on_request = true}};

class Monitor : public testing::Test {
  protected:
    void SetUp() override {
        fake_machine = {};
        fake_machine.unavailable[Backend::kvm] = "no KVM";
        threshold_in_test = duration_in_test = 0;
        take_console_lines();
    }

    void type(const std::string& commands, const std::string& boot = "monitor") {
        static CommandLine line;
        std::destroy_at(&line);
        std::construct_at(&line);
        ErrorText error;
        ASSERT_TRUE(parse_command_line(boot + " end=1", line, error)) << error.view();
        const TestGroup group{kMonitored};
        const std::array<const TestGroup*, 1> groups{&group};
        fake_machine.console_input = commands + "quit\n";
        verdict = run_monitor(Registry(groups), line);
        lines = take_console_lines();
    }

    bool says(const std::string& line) const { return std::find(lines.begin(), lines.end(), line) != lines.end(); }
    std::string all() const {
        std::string text;
        for (const auto& line : lines)
            text += line + "\n";
        return text;
    }

    Verdict verdict = Verdict::error;
    std::vector<std::string> lines;
};

TEST_F(Monitor, NothingAskedIsNothingRun) {
    type("");
    EXPECT_EQ(verdict, Verdict::skip);
    EXPECT_TRUE(says("KTAP version 1"));
    EXPECT_TRUE(says("1..0"));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "# monitor: ready"), 1);
}

TEST_F(Monitor, RunsWhatIsAskedForAndNumbersItOn) {
    type("run lock.sees\nrun lock.fails\nrun lock.sees/tas/native\n");
    EXPECT_EQ(verdict, Verdict::fail);
    EXPECT_TRUE(says("ok 1 lock.sees/tas/native"));
    EXPECT_TRUE(says("ok 2 lock.sees/pv/kvm # SKIP no KVM"));
    EXPECT_TRUE(says("not ok 3 lock.fails/tas/native # broken"));
    EXPECT_TRUE(says("ok 4 lock.sees/tas/native"));
    EXPECT_TRUE(says("1..4")) << all();
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "# monitor: ready"), 4);
}

TEST_F(Monitor, SettingsLastAndWordsOfARunDoNot) {
    type("set spin_threshold 4096\nrun lock.sees duration_ms=7\n", "monitor tests=smp.* duration_ms=50");
    EXPECT_EQ(threshold_in_test, 4096u);
    EXPECT_EQ(duration_in_test, 7u);
    EXPECT_TRUE(says("# set spin_threshold=4096"));
    type("run lock.sees spin_threshold=9\nrun lock.sees\n", "monitor duration_ms=50");
    EXPECT_EQ(threshold_in_test, 1u << 15);
    EXPECT_EQ(duration_in_test, 50u);
}

TEST_F(Monitor, ASwitchActsWhileATestRuns) {
    typed_meanwhile = "set spin_threshold 77\nstats\n";
    type("run smp.meanwhile\n");
    EXPECT_TRUE(says("# all counters are 0"));
    EXPECT_EQ(threshold_in_test, 77u);
    EXPECT_TRUE(says("# set spin_threshold=77: the locks' switches now, all else with the next test")) << all();
    EXPECT_EQ(verdict, Verdict::pass);
}

TEST_F(Monitor, WhatCannotBeDoneWhileATestRunsWaitsWithAllBehindIt) {
    typed_meanwhile = "run lock.fails\nset spin_threshold 77\n";
    type("run smp.meanwhile\nrun lock.sees\n");
    EXPECT_TRUE(says("# run: waits for the end of the test that runs"));
    EXPECT_TRUE(says("not ok 2 lock.fails/tas/native # broken")) << all();
    EXPECT_TRUE(says("ok 3 lock.sees/tas/native"));
    EXPECT_TRUE(says("# set spin_threshold=77")) << "not while the test ran";
    EXPECT_EQ(threshold_in_test, 77u);
}

TEST_F(Monitor, BadInputIsNamedAndChangesNothing) {
    type(
        "set spin_threshold nonsense\nset spin_treshold 5\nset\nset a b c\nset x=1 2\nfrobnicate\nrun\nrun nosuch.*\n" +
        std::string(1000, 'x') + "\nrun lock.sees nonsense=1\nrun lock.sees\n");
    EXPECT_EQ(threshold_in_test, 1u << 15);
    const auto text = all();
    for (const char* said :
         {"spin_threshold=nonsense", "did you mean spin_threshold?", "# error: set KEY VALUE is wanted",
          "# error: frobnicate: no command", "# error: run what?", "nosuch.*: matches nothing",
          "more than 480 characters", "nonsense=1"})
        EXPECT_NE(text.find(said), std::string::npos) << said << "\n" << text;
    EXPECT_TRUE(says("1..2")) << "only the last run ran: " << text;
    EXPECT_EQ(verdict, Verdict::pass);
}

TEST_F(Monitor, ListsLocksOnceWithTheFactThatForbidsThem) {
    type("locks\n");
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "# tas/native"), 1) << all();
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "# pv/kvm: no KVM"), 1) << all();
}

TEST_F(Monitor, CountersAreThoseSinceTheReset) {
    fake_machine.lock_events = 5;
    type("stats\nreset\nstats\n");
    EXPECT_TRUE(says("# pv_wait_node 20")) << all(); // four CPUs
    EXPECT_TRUE(says("# all counters are 0"));
}

TEST_F(Monitor, TheSettingsHaveABound) {
    std::string many;
    for (int i = 0; i < 400; ++i)
        many += "set spin_threshold 1000000\n";
    type(many + "run lock.sees\n");
    EXPECT_EQ(threshold_in_test, 1000000u);
    EXPECT_EQ(verdict, Verdict::pass) << all();
}

} // namespace
} // namespace spinkick::test
