// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/sync_point.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernel/options.hpp"
#include "tests/host/console_capture.hpp"
#include "tests/host/fake_machine.hpp"

namespace spinkick::test {
namespace {

CommandLine sync_line;

TEST(SyncPoint, WaitsForItsByteAndGivesUpOnceForAll) {
    using Lines = std::vector<std::string>;
    options::use(sync_line);
    (void)take_console_lines();
    fake_machine.byte_after_looks = 3;
    EXPECT_FALSE(sync_point()) << "nobody asked";
    EXPECT_EQ(take_console_lines(), Lines{});

    sync_line.sync = true;
    fake_machine.console_input = "noise"; // no answer, since it came before
    EXPECT_EQ(sync_point(), 1u);
    EXPECT_EQ(sync_point(), 2u);
    EXPECT_EQ(take_console_lines(), (Lines{"# sync 1", "# sync 2"}));

    fake_machine.byte_after_looks = 0;
    const auto before = fake_machine.now_ns;
    EXPECT_FALSE(sync_point());
    EXPECT_GE(fake_machine.now_ns - before, 2'000'000'000u);
    const auto lines = take_console_lines();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_TRUE(lines[1].starts_with("# WARN sync point 3 had no answer within 2000 ms")) << lines[1];

    const auto given_up = fake_machine.now_ns;
    EXPECT_FALSE(sync_point());
    EXPECT_LT(fake_machine.now_ns - given_up, 1'000'000u) << "no further one waits";
    EXPECT_EQ(take_console_lines(), Lines{});
    sync_line.sync = false;
}

} // namespace
} // namespace spinkick::test
