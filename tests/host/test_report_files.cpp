// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/collect.hpp"
#include "tools/junit.hpp"
#include "tools/results.hpp"
#include "tools/summary.hpp"
#include "tools/tap.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

Results collected(std::string_view log, RunId id = {}, const Ending& ending = {}) {
    return results_of(sample::parse(log), {"tcg", "emulated", "spinkick.elf", std::string(64, 'a'), 2, id, ending});
}

std::size_t count(std::string_view text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
        ++found;
    return found;
}

TEST(Records, OfTheContextSayWhatTheHostIs) {
    const RunFacts facts{.platform = "nested-kvm",
                         .timing = "emulated",
                         .image = {},
                         .image_sha256 = {},
                         .pcpus = {},
                         .id = {},
                         .ending = {},
                         .host_facts = {"kernel=6.1.0-57", "cpu=EPYC = old"}};
    const Results results = results_of(sample::parse(sample::passing()), facts);
    ASSERT_FALSE(results.records.empty());
    EXPECT_EQ(results.records[0]["host"], (Json{{"kernel", "6.1.0-57"}, {"cpu", "EPYC = old"}}));
    for (const Json& record : results.records)
        EXPECT_EQ(record.contains("host"), record["type"] == "context");
    EXPECT_TRUE(sample::has(summary(results, Colour::off), "kernel 6.1.0-57, cpu EPYC = old"));
}

TEST(Records, CarryWhatOnlyTheRunnerKnows) {
    const Results results = collected(sample::passing(), {3, 2});
    ASSERT_EQ(results.records.size(), 2u);
    for (const Json& record : results.records) {
        EXPECT_EQ(record.at("timing"), "emulated");
        EXPECT_EQ(record.at("platform"), "tcg");
        EXPECT_EQ(record.at("image_sha256"), std::string(64, 'a'));
        EXPECT_EQ(record.at("pcpus"), 2);
        EXPECT_EQ(run_id_of(record), (RunId{3, 2}));
    }
    EXPECT_FALSE(results.records[0].contains("test"));
    EXPECT_EQ(results.records[1].at("test"), "smp.all_up");
}

TEST(Tap, HasThePlanAndEveryPlannedTest) {
    const std::string log = sample::passing();
    const std::string tap = to_tap(collected(log.substr(0, log.find("ok 4"))));
    EXPECT_TRUE(tap.starts_with("KTAP version 1\n1..5\n")) << tap;
    EXPECT_TRUE(sample::has(tap, "\nok 3 lock.mutual_exclusion/tas/native\n"));
    EXPECT_TRUE(
        sample::has(tap, "\nnot ok 4 lock.mutual_exclusion/pv-queued/kvm # not run: it began and has no result\n"));
    EXPECT_TRUE(sample::has(tap, "\nnot ok 5 unknown.test_5 # not run\n"));
    EXPECT_TRUE(sample::has(tap, "\nBail out! CRASH: "));
}

TEST(Tap, AFailureNeverLooksLikeADirective) {
    const std::string log =
        "1..2\nnot ok 1 a.b # todo something\nnot ok 2 a.c # SKIP me\n" + sample::verdict("FAIL", 2, {0, 2, 0, 0});
    const std::string tap = to_tap(collected(log));
    EXPECT_TRUE(sample::has(tap, "\nnot ok 1 a.b # failed: todo something\n")) << tap;
    EXPECT_TRUE(sample::has(tap, "\nnot ok 2 a.c # failed: SKIP me\n")) << tap;
}

TEST(Tap, EqualNamesStayApart) {
    const std::string tap = to_tap(collected("1..2\nnot ok 1 a.b # no\nok 2 a.b\n"));
    EXPECT_TRUE(sample::has(tap, "\nnot ok 1 a.b # no\n"));
    EXPECT_TRUE(sample::has(tap, "\nok 2 a.b@2\n")) << tap;
}

TEST(Tap, AMeasurementStandsBeforeTheTestItBelongsTo) {
    const std::string tap = to_tap(collected(sample::passing()));
    const std::size_t record = tap.find("\"ns\":1500000");
    ASSERT_NE(record, std::string::npos);
    EXPECT_GT(record, tap.find("ok 1 boot.tables"));
    EXPECT_LT(record, tap.find("ok 2 smp.all_up"));
}

TEST(Junit, CountsAreThoseOfItsCases) {
    const std::string xml = to_junit(collected(sample::failing()));
    EXPECT_EQ(count(xml, "<testcase "), 5u);
    EXPECT_EQ(count(xml, "<failure "), 1u);
    EXPECT_EQ(count(xml, "<skipped "), 1u);
    EXPECT_TRUE(sample::has(xml, "<testsuites name=\"spinkick\" tests=\"5\" failures=\"1\" errors=\"0\"")) << xml;
    EXPECT_TRUE(sample::has(xml, "time=\"0.001500000\""));
}

TEST(Junit, ARunWithoutAVerdictIsACaseOfItsOwn) {
    const std::string xml = to_junit(collected(sample::without_verdict(sample::passing())));
    EXPECT_TRUE(sample::has(xml, "name=\"run.verdict\"")) << xml;
    EXPECT_EQ(count(xml, "<error "), 1u);
}

TEST(Junit, HoldsNoCharacterThatXmlForbids) {
    const std::string log = "1..1\nnot ok 1 a.<b>&\"c # <&>\"' \x01\x1b \xff\xfe\n# json {\"type\":\"x<&\x7f\"}\n";
    const std::string xml = to_junit(collected(log));
    EXPECT_TRUE(std::all_of(xml.begin(), xml.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); }));
    EXPECT_TRUE(sample::has(xml, "a.&lt;b&gt;&amp;&quot;c"));
}

TEST(ResultsJson, ReadsBackWhatItWrote) {
    const Results results = collected(sample::failing(), {1, {}});
    const Results again = from_json(to_json(results), "again");
    EXPECT_EQ(to_json(again), to_json(results));
    EXPECT_EQ(again.word(), Word::FAIL);
    const Json json = Json::parse(to_json(results));
    EXPECT_EQ(json.at("verdict").at("exit_code"), 1);
    EXPECT_EQ(json.at("verdict").at("plan"), 5);
    EXPECT_EQ(json.at("tests").at(1).at("ns"), 1'500'000);
}

TEST(ResultsJson, EveryTruncationIsANamedError) {
    const std::string text = to_json(collected(sample::failing()));
    for (std::size_t size = 0; size + 2 < text.size(); ++size) {
        try {
            static_cast<void>(from_json(text.substr(0, size), "cut.json"));
            FAIL() << size;
        } catch (const InputError& error) {
            EXPECT_TRUE(sample::has(error.what(), "cut.json"));
        }
    }
}

TEST(ResultsJson, OtherSchemasAndOtherFilesAreNamedErrors) {
    const auto message = [](std::string_view text) -> std::string {
        try {
            static_cast<void>(from_json(text, "x.json"));
        } catch (const InputError& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_TRUE(sample::has(message(R"({"schema":2,"records":[],"tests":[],"runs":[]})"), "schema 2"));
    EXPECT_TRUE(sample::has(message(R"({"schema":"1"})"), "schema"));
    EXPECT_TRUE(sample::has(message("[]"), "not a results.json"));
    EXPECT_TRUE(sample::has(message("{}"), "not a results.json"));
    EXPECT_TRUE(sample::has(message(R"({"schema":1,"records":[],"tests":[],"runs":[]})"), "no run"));
    EXPECT_TRUE(sample::has(message(R"({"schema":1,"records":[5],"tests":[],"runs":[]})"), "damaged"));
    EXPECT_TRUE(sample::has(
        message(R"({"schema":1,"records":[],"tests":[{"name":"a.b","status":"great","reason":""}],"runs":[]})"),
        "great"));
}

TEST(ResultsJson, EverySingleByteChangedIsReadOrRefused) {
    std::string text = to_json(collected(sample::failing()));
    for (std::size_t at = 0; at < text.size(); ++at)
        for (const char c : {'\0', '"', '{', '9', '-', 'x', '\xff'}) {
            const char old = std::exchange(text[at], c);
            try {
                const Results results = from_json(text, "x");
                static_cast<void>(to_tap(results) + to_junit(results) + to_json(results));
            } catch (const InputError&) {
            }
            text[at] = old;
        }
}

TEST(Merge, KeepsEveryRunApart) {
    std::vector<Results> parts;
    parts.push_back(collected(sample::passing(), {1, 1}));
    parts.push_back(collected(sample::failing(), {2, 1}));
    parts.push_back(collected(sample::without_verdict(sample::passing()), {3, 1}));
    const Results whole = merge(std::move(parts));
    EXPECT_EQ(whole.word(), Word::FAIL);
    EXPECT_EQ(whole.tests.size(), 15u);
    EXPECT_EQ(whole.records.size(), 6u);
    const std::string tap = to_tap(whole);
    EXPECT_TRUE(sample::has(tap, "1..15\n"));
    EXPECT_TRUE(sample::has(tap, "not ok 8 lock.mutual_exclusion/tas/native@run2@vm1 # two CPUs inside\n")) << tap;
    EXPECT_EQ(count(to_junit(whole), "<testcase "), 16u);
}

TEST(Merge, GuestsOfOneBootStayTogether) {
    std::vector<Results> parts;
    for (int boot = 0; boot < 2; ++boot)
        for (std::uint32_t guest = 1; guest <= 2; ++guest)
            parts.push_back(collected(sample::passing(), {{}, guest}));
    const Results whole = merge(std::move(parts));
    ASSERT_EQ(whole.runs.size(), 4u);
    EXPECT_EQ(whole.runs[0].id, (RunId{1, 1}));
    EXPECT_EQ(whole.runs[1].id, (RunId{1, 2}));
    EXPECT_EQ(whole.runs[2].id, (RunId{2, 1}));
    EXPECT_EQ(whole.runs[3].id, (RunId{2, 2}));

    const Results twice = merge({whole, whole});
    ASSERT_EQ(twice.runs.size(), 8u);
    EXPECT_EQ(twice.runs[4].id, (RunId{3, 1}));
    EXPECT_EQ(twice.runs[5].id, (RunId{3, 2}));
    EXPECT_EQ(twice.runs[7].id, (RunId{4, 2}));
}

TEST(Merge, RunsWithoutNumbersGetOnes) {
    std::vector<Results> parts;
    parts.push_back(collected(sample::passing()));
    parts.push_back(collected(sample::passing(), {1, {}}));
    parts.push_back(collected(sample::passing(), {1, {}}));
    const Results whole = merge(std::move(parts));
    std::vector<RunId> ids;
    for (const RunVerdict& run : whole.runs)
        ids.push_back(run.id);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, (std::vector<RunId>{{1, {}}, {2, {}}, {3, {}}}));
    for (const TestResult& test : whole.tests)
        EXPECT_TRUE(test.id.run);
}

TEST(Files, AreWrittenWholeAndReadBack) {
    const auto directory = std::filesystem::path{testing::TempDir()} / "spinkick_report_files";
    std::filesystem::remove_all(directory);
    write_files(collected(sample::failing()), directory / "deep");
    for (const char* name : {"results.tap", "results.json", "junit.xml"})
        EXPECT_TRUE(std::filesystem::exists(directory / "deep" / name)) << name;
    EXPECT_EQ(load_results(directory / "deep").word(), Word::FAIL);
    EXPECT_THROW(static_cast<void>(load_results(directory)), InputError);
    std::filesystem::remove_all(directory);
}

TEST(Files, SeveralLogsAreOneStreamOfWholeLines) {
    const auto directory = std::filesystem::path{testing::TempDir()} / "spinkick_report_logs";
    std::filesystem::create_directories(directory);
    const std::string log = sample::passing();
    std::ofstream(directory / "a") << "outer machine\n(cut";
    std::ofstream(directory / "b") << log;
    EXPECT_EQ(judge(read_logs({directory / "a", directory / "b"}), {}).word, Word::PASS);
    EXPECT_THROW(static_cast<void>(read_logs({directory / "c"})), InputError);
    EXPECT_THROW(static_cast<void>(read_logs({directory})), InputError);
    std::filesystem::remove_all(directory);
}

} // namespace
} // namespace spinkick::report
