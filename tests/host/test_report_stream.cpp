// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

using sample::parse;

TEST(VerdictLine, ChecksumIsZlibs) {
    const auto verdict = parse_verdict(sample::kKnownVerdict);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(*verdict, (VerdictLine{Word::PASS, 5, {4, 0, 0, 1}}));
    EXPECT_EQ(std::string{sample::kKnownVerdict} + "\n", sample::verdict("PASS", 5, {4, 0, 0, 1}));
}

TEST(VerdictLine, WithoutItsChecksumItDoesNotExist) {
    const std::string line = sample::verdict("PASS", 5, {4, 0, 0, 1});
    EXPECT_FALSE(parse_verdict(line.substr(0, line.find("crc="))));
    EXPECT_FALSE(parse_verdict(line.substr(0, line.size() - 2))); // one digit short
    std::string other = line;
    other[other.find("pass=4") + 5] = '5';
    EXPECT_FALSE(parse_verdict(other));
}

TEST(VerdictLine, HasNoOtherFields) {
    const std::string text = "spinkick: verdict: PASS plan=1 pass=1 fail=0 error=0 skip=0 more=1 ";
    EXPECT_FALSE(parse_verdict(fmt::format("{}crc={:08x}", text, crc32(text))));
}

TEST(VerdictLine, HostWordsAreNotTheImages) {
    EXPECT_FALSE(parse_verdict(sample::verdict("CRASH", 5, {})));
    EXPECT_FALSE(parse_verdict(sample::verdict("HANG", 5, {})));
    EXPECT_FALSE(parse_verdict(sample::verdict("FINE", 5, {})));
}

TEST(SerialStream, ReadsEveryFormOfTheContract) {
    const Stream stream = parse(sample::failing());
    EXPECT_EQ(stream.boot, "pvh");
    EXPECT_TRUE(stream.ktap);
    EXPECT_EQ(stream.plan, 5u);
    ASSERT_EQ(stream.tests.size(), 5u);
    EXPECT_EQ(stream.tests.at(3).status, Status::fail);
    EXPECT_EQ(stream.tests.at(3).reason, "two CPUs inside");
    EXPECT_EQ(stream.tests.at(4).status, Status::skip);
    EXPECT_EQ(stream.tests.at(4).reason, "no PV_UNHALT");
    EXPECT_EQ(stream.tests.at(2).ns, 1'500'000u);
    EXPECT_EQ(stream.records.size(), 2u);
    EXPECT_TRUE(stream.verdict);
    EXPECT_TRUE(stream.conflicts.empty());
}

TEST(SerialStream, PiecesOfAnySizeGiveTheSame) {
    const std::string log = sample::failing();
    for (const std::size_t piece : {1u, 2u, 3u, 7u, 64u}) {
        StreamParser parser;
        for (std::size_t at = 0; at < log.size(); at += piece)
            parser.feed(std::string_view{log}.substr(at, piece));
        parser.end();
        EXPECT_EQ(parser.stream().completed.size(), 5u);
        EXPECT_TRUE(parser.stream().verdict);
    }
}

TEST(SerialStream, FindsLinesBehindAConsolesPrefix) {
    for (const std::string_view prefix :
         {"(d0) ", "(XEN) (d0) ", "vm1: ", "[   12.345678] ", "\x1b[2J\x1b[1;1H", "  "}) {
        std::string log;
        const std::string plain = sample::passing();
        for (std::size_t at = 0; at < plain.size();) {
            const std::size_t end = plain.find('\n', at) + 1;
            log += "(XEN) d0: something else\r\n";
            log += prefix;
            log += plain.substr(at, end - at - 1) + "\r\n";
            at = end;
        }
        EXPECT_EQ(sample::word_for(log), Word::PASS) << prefix;
    }
}

TEST(SerialStream, FirmwareTextBeforeTheFirstLineIsNoTrouble) {
    EXPECT_EQ(sample::word_for("SeaBIOS (version 1.16.2)\r\nBooting from ROM.." + sample::passing()), Word::PASS);
}

/// Status of test 3 after byte `offset` of its "not ok" line has become `byte`.
Status status_after(std::string_view line, std::size_t offset, char byte) {
    std::string log = "1..3\n# begin 3 lock.a/tas/native\n" + std::string{line};
    log[log.find(line) + offset] = byte;
    const Stream stream = parse(log);
    return believed_tests(stream, judge(stream, {})).at(2).status.value();
}

TEST(SerialStream, AMangledNotIsNoPass) {
    for (std::size_t offset = 0; offset < 4; ++offset) {
        for (int byte = 0; byte < 256; ++byte)
            EXPECT_NE(status_after("not ok 3 lock.a/tas/native # two inside\n", offset, static_cast<char>(byte)),
                      Status::pass)
                << offset << ' ' << byte;
        // Without its reason the rest looks like a pass; letters in front of it give it away.
        for (const char byte : {'X', '0', '\0', '\x80'})
            EXPECT_NE(status_after("not ok 3 lock.a/tas/native\n", offset, byte), Status::pass)
                << offset << ' ' << int{byte};
    }
    EXPECT_EQ(status_after("not ok 3 lock.a/tas/native # two inside\n", 0, 'n'), Status::fail);
    EXPECT_EQ(status_after("    ok 3 lock.a/tas/native\n", 0, ' '), Status::pass);
}

TEST(SerialStream, ForeignTextThatHoldsAResultIsNone) {
    // "lock 3 tas.native" holds "ok 3 tas.native".
    const Stream stream = parse("1..4\n(XEN) spinlock 3 tas.native\n# lock 4 x.y\n");
    EXPECT_TRUE(stream.completed.empty());
}

TEST(SerialStream, AResultNeedsTheNameItsTestBeganWith) {
    const Stream stream = parse("1..1\n# begin 1 lock.a\nok 1 lock.b\n");
    EXPECT_FALSE(stream.tests.at(1).status);
    EXPECT_EQ(stream.running, 1u);
}

TEST(SerialStream, OnlySkipMayFollowAPass) {
    EXPECT_TRUE(parse("ok 1 lock.a # TODO later\n").completed.empty());
    EXPECT_TRUE(parse("ok 1 lock.a # SKIPPED\n").completed.empty());
    EXPECT_TRUE(parse("ok 1 lock.a and more\n").completed.empty());
    EXPECT_EQ(parse("not ok 1 lock.a # SKIP no\n").tests.at(1).status, Status::fail);
    EXPECT_EQ(parse("not ok 1 lock.a # ERROR no\n").tests.at(1).status, Status::error);
    EXPECT_EQ(parse("not ok 1 lock.a # ERRORS\n").tests.at(1).status, Status::fail);
}

TEST(SerialStream, ALastLineWithoutItsEndIsCut) {
    EXPECT_TRUE(parse("ok 1 lock.a").completed.empty());
    EXPECT_FALSE(parse("1..4").plan);
}

TEST(SerialStream, TheSameResultTwiceIsOneAnotherOneIsAConflict) {
    EXPECT_TRUE(parse("ok 1 lock.a\nok 1 lock.a\n").conflicts.empty());
    const Stream stream = parse("ok 1 lock.a\nnot ok 1 lock.a # no\n");
    EXPECT_EQ(stream.conflicts.size(), 1u);
    EXPECT_EQ(stream.tests.at(1).status, Status::fail);
}

TEST(SerialStream, DamagedRecordsAreCountedAndNotKept) {
    EXPECT_EQ(parse("# json {\"type\":\"bench\",\n").damaged_records, 1u);
    EXPECT_EQ(parse("# json [1,2]\n").damaged_records, 1u);
    EXPECT_EQ(parse("# json {\"bench\":1}\n").damaged_records, 1u);
    const auto nested = [](std::size_t depth) {
        return "# json {\"type\":\"x\",\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}\n";
    };
    EXPECT_EQ(parse(nested(2)).damaged_records, 0u);
    EXPECT_EQ(parse(nested(100)).damaged_records, 1u);
    EXPECT_EQ(parse(nested(100'000)).damaged_records, 1u);
}

TEST(SerialStream, HugeNumbersAndLinesCostNothing) {
    EXPECT_FALSE(parse("1..4000000000\n").plan);
    EXPECT_TRUE(parse("ok 4000000000 lock.a\nok 0 lock.a\nok 99999999999999999999 lock.a\n").tests.empty());
    EXPECT_EQ(sample::word_for(std::string(std::size_t{8} << 20, 'x') + "\n" + sample::passing()), Word::PASS);
}

TEST(SerialStream, ControlCharactersBecomeVisible) {
    const Stream stream = parse("not ok 1 lock.a # bell \x07 and \xff\n");
    EXPECT_EQ(stream.tests.at(1).reason, "bell \\x07 and \\xff");
}

} // namespace
} // namespace spinkick::report
