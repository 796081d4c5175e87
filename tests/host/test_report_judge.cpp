// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"

namespace spinkick::report {
namespace {

using sample::parse;
using sample::word_for;

constexpr int kPass = 33, kFail = 35, kError = 37, kPanic = 39, kSkip = 41;

int exit_for(std::string_view log, const Ending& ending) { return raw(exit_code_of(word_for(log, ending))); }

TEST(Judge, WordsOfTheImageWithTheirQemuExitCodes) {
    EXPECT_EQ(exit_for(sample::passing(), {kPass, false}), 0);
    EXPECT_EQ(exit_for(sample::failing(), {kFail, false}), 1);
    EXPECT_EQ(
        exit_for("1..1\nnot ok 1 a.b # ERROR no memory\n" + sample::verdict("ERROR", 1, {0, 0, 1, 0}), {kError, false}),
        2);
    EXPECT_EQ(exit_for("1..1\nok 1 a.b # SKIP no KVM\n" + sample::verdict("SKIP", 1, {0, 0, 0, 1}), {kSkip, false}),
              77);
    EXPECT_EQ(exit_for("1..0\n" + sample::verdict("SKIP", 0, {}), {kSkip, false}), 77);
}

TEST(Judge, AnExitCodeThatContradictsTheVerdictIsAnErrorThatNamesBoth) {
    for (const int code : {0, 1, kFail, kError, kPanic, kSkip, 134}) {
        const Judgement judgement = judge(parse(sample::passing()), {code, false});
        EXPECT_EQ(judgement.word, Word::ERROR) << code;
        EXPECT_NE(judgement.reason.find("PASS"), std::string::npos) << judgement.reason;
        EXPECT_NE(judgement.reason.find(fmt::format("ended with {}", code)), std::string::npos) << judgement.reason;
    }
}

TEST(Judge, AnImageWithoutExitDeviceMayPowerOff) {
    const std::string log = sample::passing() + "spinkick: exit device absent\n";
    EXPECT_EQ(word_for(log, {0, false}), Word::PASS);
    EXPECT_EQ(word_for(log, {kFail, false}), Word::ERROR);
}

TEST(Judge, AXenDomainPowersOffWithAVerdictAndCrashesWithoutOne) {
    const auto by = [](int reason) { return Ending{std::nullopt, false, reason}; };
    EXPECT_EQ(exit_for(sample::passing(), by(0)), 0);
    EXPECT_EQ(exit_for(sample::failing(), by(0)), 1);
    for (const int reason : {1, 3, 4, -1, 77}) {
        const Judgement judgement = judge(parse(sample::passing()), by(reason));
        EXPECT_EQ(judgement.word, Word::ERROR) << reason;
        EXPECT_NE(judgement.reason.find(fmt::format("reason {}", reason)), std::string::npos) << judgement.reason;
    }
    const std::string log = sample::without_verdict(sample::passing());
    for (const int reason : {0, 1, 3})
        EXPECT_EQ(exit_for(log, by(reason)), 3);
    EXPECT_NE(judge(parse(log), by(3)).reason.find("shutdown reason 3 (crash)"), std::string::npos);
    EXPECT_EQ(word_for("", by(3)), Word::CRASH); // before its first line
    EXPECT_EQ(word_for("", {std::nullopt, false, std::nullopt}), Word::ERROR);
}

TEST(Judge, AGuestThatDoesNotEndAfterItsVerdictIsAnError) {
    EXPECT_EQ(word_for(sample::passing(), {std::nullopt, true}), Word::ERROR);
}

TEST(Judge, NoVerdictIsACrashOrAHangWhateverCameBefore) {
    const std::string log = sample::without_verdict(sample::passing());
    EXPECT_EQ(exit_for(log, {0, false}), 3);
    EXPECT_EQ(exit_for(log, {kPass, false}), 3);
    EXPECT_EQ(exit_for(log, {std::nullopt, false}), 3);
    EXPECT_EQ(exit_for(log, {std::nullopt, true}), 124);
    EXPECT_EQ(exit_for(log, {124, true}), 124);
}

TEST(Judge, ACrashNamesTheTestThatWasRunning) {
    const std::string log = sample::passing();
    const Judgement judgement = judge(parse(log.substr(0, log.find("ok 3"))), {0, false});
    EXPECT_NE(judgement.reason.find("test 3 lock.mutual_exclusion/tas/native was running"), std::string::npos);
}

TEST(Judge, WhereNoTestRanTheLastLineSaysHowFarItCame) {
    const std::string log = "spinkick: boot: pvh\n# CPU 3: sent\x1b[0m INIT\n\n  \n";
    const Judgement hang = judge(parse(log), {std::nullopt, true});
    EXPECT_NE(hang.reason.find("no verdict in time; the last line is `# CPU 3: sent INIT`"), std::string::npos)
        << hang.reason;
    const Judgement cut = judge(parse(log + "# CPU 3: ru"), {0, false});
    EXPECT_NE(cut.reason.find("(QEMU exit code 0); the last line is `# CPU 3: ru`"), std::string::npos) << cut.reason;
}

TEST(Judge, APanicIsACrashEvenIfTheGuestHadToBeStopped) {
    const std::string log = sample::without_verdict(sample::passing()) + "PANIC: double fault\n";
    EXPECT_EQ(exit_for(log, {kPanic, false}), 3);
    EXPECT_EQ(exit_for(log, {std::nullopt, true}), 3);
    EXPECT_NE(judge(parse(log), {}).reason.find("double fault"), std::string::npos);
    EXPECT_EQ(word_for("PANIC: early\n" + sample::passing(), {kPass, false}), Word::CRASH);
    EXPECT_EQ(word_for(sample::passing() + "PANIC: late\n", {kPass, false}), Word::ERROR);
}

TEST(Judge, QemusOwnTroubleIsNoTestsFault) {
    EXPECT_EQ(exit_for("", {1, false}), 2);
    EXPECT_EQ(exit_for("SeaBIOS\n", {1, false}), 2);
    EXPECT_EQ(exit_for(sample::without_verdict(sample::passing()), {134, false}), 2);
    EXPECT_EQ(exit_for(sample::without_verdict(sample::passing()), {1, false}), 2);
}

TEST(Judge, ALogWithoutALineOfTheImage) {
    EXPECT_EQ(exit_for("", {std::nullopt, false}), 2);
    EXPECT_EQ(exit_for("SeaBIOS\n", {std::nullopt, false}), 2);
    EXPECT_EQ(exit_for("", {0, false}), 3); // -no-reboot turns a triple fault into a clean end of QEMU
    EXPECT_EQ(exit_for("", {std::nullopt, true}), 124);
}

TEST(Judge, AMachineWithoutASerialPortSaysItByTheExitDeviceAlone) {
    for (const int code : {kPass, kFail, kError, kSkip})
        EXPECT_EQ(exit_for("", {code, false}), 2);
    EXPECT_NE(judge(parse(""), {kPass, false}).reason.find("the exit device says PASS"), std::string::npos);
    EXPECT_EQ(exit_for("", {kPanic, false}), 3);
    EXPECT_EQ(exit_for("SeaBIOS\n", {kPass, false}), 3); // there is a port, and the image has not used it
}

TEST(Judge, AResetBeforeTheVerdictIsACrashEvenIfTheSecondBootPasses) {
    EXPECT_EQ(word_for(sample::without_verdict(sample::passing()) + sample::passing(), {kPass, false}), Word::CRASH);
    EXPECT_EQ(word_for(sample::passing() + sample::passing(), {kPass, false}), Word::ERROR);
}

TEST(Judge, AVerdictWhoseCountsDisagreeIsNotBelieved) {
    const std::string body = sample::without_verdict(sample::passing());
    EXPECT_EQ(word_for(body + sample::verdict("PASS", 5, {5, 0, 0, 0})), Word::ERROR);
    EXPECT_EQ(word_for(body + sample::verdict("PASS", 6, {5, 0, 0, 1})), Word::ERROR);
    EXPECT_EQ(word_for(body + sample::verdict("SKIP", 5, {4, 0, 0, 1})), Word::ERROR);
    EXPECT_EQ(word_for(body + sample::verdict("FAIL", 5, {4, 0, 0, 1})), Word::ERROR);
    EXPECT_EQ(word_for(body + sample::verdict("PASS", 5, {4, 0, 0, 1})), Word::PASS);
}

TEST(Judge, APassNeedsAResultOfEveryPlannedTest) {
    const std::string log = sample::passing();
    for (int number = 1; number <= 5; ++number) {
        std::string cut = log;
        const std::size_t at = cut.find(fmt::format("\nok {} ", number)) + 1;
        cut.erase(at, cut.find('\n', at) + 1 - at);
        const Judgement judgement = judge(parse(cut), {});
        EXPECT_EQ(judgement.word, Word::ERROR);
        EXPECT_NE(judgement.reason.find(fmt::format("no result for test {} ", number)), std::string::npos)
            << judgement.reason;
    }
}

TEST(Judge, VerdictsThatDifferAreNotBelieved) {
    EXPECT_EQ(word_for(sample::passing() + sample::verdict("PASS", 5, {5, 0, 0, 0})), Word::ERROR);
}

TEST(Judge, OneWholeCopyOfTheVerdictIsEnough) {
    const std::string verdict = sample::verdict("PASS", 5, {4, 0, 0, 1});
    const std::string body = sample::without_verdict(sample::passing());
    const std::string broken = verdict.substr(0, 30) + "(XEN) noise" + verdict.substr(30);
    EXPECT_EQ(word_for(body + broken + broken + verdict), Word::PASS);
    EXPECT_EQ(word_for(body + broken + broken + broken), Word::CRASH);
}

TEST(Judge, EqualNamesAreBothKeptAndAreNoPass) {
    const std::string good = "1..2\nok 1 a.b\nok 2 a.b\n" + sample::verdict("PASS", 2, {2, 0, 0, 0});
    EXPECT_EQ(word_for(good), Word::ERROR);
    const Stream mixed = parse("1..2\nnot ok 1 a.b # no\nok 2 a.b\n" + sample::verdict("FAIL", 2, {1, 1, 0, 0}));
    const Judgement judgement = judge(mixed, {});
    EXPECT_EQ(judgement.word, Word::FAIL);
    const auto tests = believed_tests(mixed, judgement);
    ASSERT_EQ(tests.size(), 2u);
    EXPECT_EQ(tests[0].status, Status::fail);
    EXPECT_EQ(tests[1].status, Status::pass);
}

TEST(Judge, BadInputIsAnErrorWithTheImagesText) {
    const std::string log = "spinkick: boot: pvh\nspinkick: error: unknown key: frobnicate\n" +
                            sample::three(sample::verdict("ERROR", 0, {0, 0, 1, 0}));
    const Judgement judgement = judge(parse(log), {kError, false});
    EXPECT_EQ(judgement.word, Word::ERROR);
    EXPECT_EQ(judgement.reason, "unknown key: frobnicate");
}

TEST(Judge, ACutLogLeavesTheRestNotRun) {
    const std::string log = sample::passing();
    std::size_t lines = 0;
    for (std::size_t at = log.find("1..5\n") + 5; at < log.find(kVerdictStart); at = log.find('\n', at) + 1) {
        const Stream stream = parse(log.substr(0, at));
        const auto tests = believed_tests(stream, judge(stream, {}));
        ASSERT_EQ(tests.size(), 5u);
        for (std::size_t i = 0; i < 5; ++i)
            EXPECT_EQ(tests[i].status == Status::not_run, i >= stream.completed.size());
        ++lines;
    }
    EXPECT_EQ(lines, 12u);
}

TEST(Judge, TheWorstWordOfSeveralRunsFollowsTheContract) {
    const std::vector<Word> order{Word::FAIL, Word::CRASH, Word::HANG, Word::ERROR, Word::SKIP, Word::PASS};
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t j = 0; j < order.size(); ++j)
            EXPECT_EQ(worst(order[i], order[j]), order[std::min(i, j)]);
}

} // namespace
} // namespace spinkick::report
