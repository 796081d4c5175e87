// SPDX-License-Identifier: BSD-2-Clause
//
// Damage of every kind, everywhere in a log. It may cost a verdict; it never makes a better one.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/collect.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

using sample::parse;

/// A pass of a damaged log is right only if a whole verdict is in it and every result is the undamaged log's.
void check(const std::string& damaged, const Stream& original, const std::string& what) {
    const Stream stream = parse(damaged);
    const Judgement judgement = judge(stream, {});
    const auto tests = believed_tests(stream, judgement);
    if (judgement.word != Word::PASS)
        return;
    std::string verdict = sample::verdict("PASS", 5, {4, 0, 0, 1});
    verdict.pop_back();
    // Terminal codes and carriage returns are taken out by the reader as they are by a terminal.
    ASSERT_NE(without_terminal_codes(damaged).find(verdict), std::string::npos) << what;
    ASSERT_EQ(tests.size(), 5u) << what;
    for (std::uint32_t i = 0; i < 5; ++i) {
        ASSERT_EQ(tests[i].status, original.tests.at(i + 1).status) << what;
        ASSERT_EQ(tests[i].name, original.tests.at(i + 1).name) << what;
    }
}

class Noise : public testing::Test {
  protected:
    void check_both(const auto& damage, std::size_t offset, const std::string& what) const {
        const std::string place = fmt::format("{} at {}", what, offset);
        check(damage(passing_, offset), original_, place);
        if (offset < failing_.size()) {
            ASSERT_NE(sample::word_for(damage(failing_, offset)), Word::PASS) << place;
        }
    }

    const std::string passing_ = sample::passing();
    const std::string failing_ = sample::failing();
    const Stream original_ = parse(passing_);
};

TEST_F(Noise, EveryTruncation) {
    for (std::size_t size = 0; size < passing_.size(); ++size)
        check_both([](std::string log, std::size_t at) { return log.substr(0, at); }, size, "cut");
    EXPECT_EQ(sample::word_for(passing_), Word::PASS);
}

TEST_F(Noise, EveryLostBeginning) {
    for (std::size_t size = 1; size < passing_.size(); ++size)
        check_both([](std::string log, std::size_t at) { return log.substr(at); }, size, "beginning lost");
}

TEST_F(Noise, EverySingleByteChanged) {
    for (std::size_t at = 0; at < passing_.size(); ++at)
        for (int value = 0; value < 256; ++value) {
            std::string damaged = passing_;
            damaged[at] = static_cast<char>(value);
            if (damaged[at] != passing_[at])
                check(damaged, original_, fmt::format("{:02x} at {}", value, at));
        }
}

TEST_F(Noise, EverySingleByteOfAFailureChangedToWhatTheFormsAreMadeOf) {
    using namespace std::string_view_literals;
    for (std::size_t at = 0; at < failing_.size(); ++at)
        for (const char value : "\0\n\r\x1b #onkt019.:)\xff"sv) {
            std::string damaged = failing_;
            damaged[at] = value;
            ASSERT_NE(sample::word_for(damaged), Word::PASS) << printable({&value, 1}) << " at " << at;
        }
}

TEST_F(Noise, EverySingleByteLost) {
    for (std::size_t at = 0; at < passing_.size(); ++at)
        check_both([](std::string log, std::size_t offset) { return log.erase(offset, 1); }, at, "byte lost");
}

TEST_F(Noise, EveryHoleOfNulBytes) {
    for (std::size_t at = 0; at < passing_.size(); ++at)
        for (const std::size_t size : {2u, 4u, 5u, 16u, 64u, 300u})
            check_both(
                [size](std::string log, std::size_t offset) {
                    const std::size_t end = std::min(log.size(), offset + size);
                    for (; offset < end; ++offset)
                        log[offset] = '\0';
                    return log;
                },
                at, fmt::format("{} NULs", size));
}

TEST_F(Noise, EveryForeignFragmentEverywhere) {
    using namespace std::string_literals;
    for (const std::string& fragment :
         {"(XEN) d0v1: unhandled port\r\n"s, "\n"s, "\r\n"s, "\0\0\0"s, "\x1b[0m"s, "not "s, "ok "s, "#"s, " # SKIP x"s,
          "\nok 3 lock.mutual_exclusion/tas/native\n"s, "\n1..5\n"s, "\nspinkick: boot: pvh\n"s, "\nPANIC: x\n"s,
          "\nspinkick: verdict: PASS plan=5 pass=5 fail=0 error=0 skip=0 crc=00000000\n"s, "lock"s, " 1 "s})
        for (std::size_t at = 0; at < passing_.size(); ++at)
            check_both([&fragment](std::string log, std::size_t offset) { return log.insert(offset, fragment); }, at,
                       printable(fragment));
}

TEST_F(Noise, ForeignTextInTheVerdictNeverCostsMoreThanThatCopy) {
    const std::size_t start = passing_.find(kVerdictStart);
    for (const std::string_view fragment : {"(XEN) noise\n", "\r\n", "garbage", "ok 3 ", "# "})
        for (std::size_t at = start; at < passing_.size(); ++at)
            ASSERT_EQ(sample::word_for(std::string{passing_}.insert(at, fragment)), Word::PASS) << fragment << at;
}

TEST_F(Noise, ForeignTextNeverMakesATestFail) {
    for (const std::string_view fragment : {"(XEN) noise\n", "\r\n", "garbage", "# "})
        for (std::size_t at = 0; at < passing_.size(); ++at) {
            const Stream stream = parse(std::string{passing_}.insert(at, fragment));
            ASSERT_NE(judge(stream, {}).word, Word::FAIL) << fragment << at;
            for (const auto& [number, test] : stream.tests)
                ASSERT_NE(test.status, Status::fail) << fragment << at;
        }
}

TEST_F(Noise, WholeForeignLinesBetweenLinesCostNothing) {
    for (std::size_t at = 0; at != std::string::npos && at < passing_.size();) {
        ASSERT_EQ(sample::word_for(std::string{passing_}.insert(at, "(XEN) [2023] d0 ok 7 # not ok\r\n")), Word::PASS);
        at = passing_.find('\n', at) + 1;
    }
}

TEST_F(Noise, ForeignTextGluedInFrontOfALineCostsNothing) {
    for (std::size_t at = 0; at < passing_.size(); at = passing_.find('\n', at) + 1)
        for (const std::string_view glued : {"(XEN) half a line", "(d0) ", "x", "0123"}) {
            const bool plan = passing_.compare(at, 5, "1..5\n") == 0;
            const Judgement judgement = judge(parse(std::string{passing_}.insert(at, glued)), {});
            ASSERT_EQ(judgement.word, Word::PASS) << glued << " before " << passing_.substr(at, 30);
            ASSERT_EQ(judgement.notes.empty(), !plan || glued == "(d0) ") << glued << at;
        }
}

TEST_F(Noise, SoupOfContractPiecesNeverThrows) {
    const std::vector<std::string> pieces{"ok ",
                                          "not ",
                                          "1",
                                          "2",
                                          "3",
                                          " ",
                                          "# ",
                                          "SKIP ",
                                          "ERROR ",
                                          "lock.a",
                                          "a.b/c/d",
                                          "\n",
                                          "\n",
                                          "\n",
                                          "\r",
                                          "1..",
                                          "# begin ",
                                          "# json ",
                                          "{\"type\":\"bench\"}",
                                          "{\"type\":",
                                          "[[1,2]]",
                                          "PANIC: ",
                                          "spinkick: boot: ",
                                          "spinkick: error: ",
                                          "KTAP version 1",
                                          "\x1b[",
                                          "\0x",
                                          sample::verdict("PASS", 2, {2, 0, 0, 0}),
                                          sample::verdict("FAIL", 3, {1, 1, 0, 1})};
    std::mt19937 random{20240611};
    for (int round = 0; round < 20'000; ++round) {
        std::string log;
        for (auto count = random() % 60; count != 0; --count)
            log += pieces[random() % pieces.size()];
        const Stream stream = parse(log);
        const RunFacts facts{"tcg", "emulated", {}, {}, {}, {}, {}};
        const Results results = results_of(stream, facts);
        if (results.word() == Word::PASS) {
            EXPECT_EQ(results.tally().pass, 2u) << printable(log);
            EXPECT_EQ(results.tally().total(), 2u) << printable(log);
        }
        EXPECT_EQ(from_json(to_json(results), "soup").tests.size(), results.tests.size());
    }
}

TEST_F(Noise, RandomBytesAreNeverAPass) {
    std::mt19937 random{7};
    for (int round = 0; round < 2'000; ++round) {
        std::string log;
        for (auto count = random() % 4'000; count != 0; --count)
            log += static_cast<char>(random() & 0xff);
        EXPECT_NE(sample::word_for(log), Word::PASS);
    }
}

} // namespace
} // namespace spinkick::report
