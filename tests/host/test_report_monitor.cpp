// SPDX-License-Identifier: BSD-2-Clause
#include "tools/monitor_session.hpp"

#include <gtest/gtest.h>

namespace spinkick::report {
namespace {

using Lines = std::vector<std::string>;

TEST(ReportMonitor, ShowsLinesForPeopleOnly) {
    MonitorSession session;
    EXPECT_EQ(session.feed("# json {\"type\":\"context\"}\r\n# pv_wait_no"), Lines{});
    EXPECT_EQ(session.feed("de 12\nok 1 lock.x\r\n# monitor: ready\n"), (Lines{"pv_wait_node 12", "ok 1 lock.x"}));
    EXPECT_EQ(session.feed("\x1b[2J\x07\n").size(), 1u);
    EXPECT_EQ(session.feed("\x07\n").at(0).find('\x07'), std::string::npos) << "a terminal would obey it";
}

TEST(ReportMonitor, AScriptWaitsForEachAnswer) {
    MonitorSession session;
    EXPECT_FALSE(session.may_go_on()) << "the guest has not said anything yet";
    (void)session.feed("# monitor: ready\n");
    EXPECT_TRUE(session.may_go_on());
    EXPECT_EQ(session.scripted("run lock.x"), "run lock.x\n");
    EXPECT_FALSE(session.may_go_on());
    (void)session.feed("ok 1 lock.x\n");
    EXPECT_FALSE(session.may_go_on());
    (void)session.feed("# monitor: ready\n");
    EXPECT_TRUE(session.may_go_on());
}

TEST(ReportMonitor, ACommandWithAnAmpersandIsNotWaitedFor) {
    MonitorSession session;
    (void)session.feed("# monitor: ready\n");
    EXPECT_EQ(session.scripted("run soak.x & "), "run soak.x\n");
    EXPECT_TRUE(session.may_go_on());
    EXPECT_EQ(session.scripted("set spin_threshold 5"), "set spin_threshold 5\n");
    EXPECT_FALSE(session.may_go_on()) << "its own answer is waited for";
    (void)session.feed("# set spin_threshold=5\n# monitor: done\n");
    EXPECT_TRUE(session.may_go_on());
    EXPECT_FALSE(session.is_ready()) << "the test runs on";
    (void)session.feed("ok 1 soak.x\n# monitor: ready\n");
    EXPECT_TRUE(session.is_ready());
    (void)session.scripted("stats");
    EXPECT_FALSE(session.may_go_on());
}

TEST(ReportMonitor, AnEmptyLineHasNoAnswer) {
    MonitorSession session;
    (void)session.feed("# monitor: ready\n");
    EXPECT_EQ(session.scripted("  "), "\n");
    EXPECT_TRUE(session.may_go_on());
}

TEST(ReportMonitor, CompletesWhatTheGuestHasNamed) {
    MonitorSession session;
    (void)session.feed("# lock.fifo/tas/native: It is a queue.\n# smp.all: All.\n# tas/native\n# byte/xen: no Xen\n");
    EXPECT_EQ(session.completions("r"), (Lines{"reset", "run"}));
    EXPECT_EQ(session.completions("run lo"), Lines{"lock.fifo/tas/native"});
    EXPECT_EQ(session.completions("run smp.all spin"), Lines{"spin_threshold="});
    EXPECT_EQ(session.completions("set wait"), Lines{"wait_early"});
    EXPECT_EQ(session.completions("trace b"), Lines{"byte/xen"});
    EXPECT_EQ(session.completions("stats x"), Lines{});
    EXPECT_EQ(session.completions("set wait_early p"), Lines{});
}

TEST(ReportMonitor, ALineWithoutEndIsNotKept) {
    MonitorSession session;
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(session.feed(std::string(4096, 'x')), Lines{});
    EXPECT_LE(session.feed("\nok 1 a\n").at(0).size(), 70000u);
}

} // namespace
} // namespace spinkick::report
