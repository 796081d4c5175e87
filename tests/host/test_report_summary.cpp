// SPDX-License-Identifier: BSD-2-Clause
#include <sstream>

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/bench_table.hpp"
#include "tools/collect.hpp"
#include "tools/summary.hpp"
#include "tools/units.hpp"

namespace spinkick::report {
namespace {

Json bench(const char* lock, const char* backend, int rep, std::uint64_t per_second, int cpus = 4) {
    return {{"type", "bench"},
            {"bench", "bench.contention"},
            {"lock", lock},
            {"backend", backend},
            {"rep", rep},
            {"cpus", cpus},
            {"acquisitions_per_s", per_second},
            {"share_min_permille", 201},
            {"share_max_permille", 333},
            {"jain_permille", 987},
            {"halts", 10},
            {"kicks", 20},
            {"spurious", 1},
            {"steal_ns", 1'500'000},
            {"platform", "tcg"},
            {"timing", "emulated"}};
}

Json histogram(const char* lock, const char* what, std::uint64_t p50, Json buckets = Json::array()) {
    Json record = {{"type", "histogram"}, {"bench", "bench.contention"},
                   {"lock", lock},        {"backend", "native"},
                   {"what", what},        {"p50_ns", p50},
                   {"p99_ns", p50 * 10},  {"max_ns", p50 * 100},
                   {"skew_ns", 35},       {"platform", "tcg"},
                   {"timing", "emulated"}};
    if (!buckets.empty())
        record["buckets"] = std::move(buckets);
    return record;
}

std::string row_of(const std::string& table, std::string_view lock) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(lock))
            return line;
    return "";
}

std::size_t widest(const std::string& text) {
    std::istringstream lines(text);
    std::size_t width = 0;
    for (std::string line; std::getline(lines, line);)
        width = std::max(width, line.size());
    return width;
}

TEST(Units, ThreeDigitsAndAUnit) {
    EXPECT_EQ(human_time(0), "0ns");
    EXPECT_EQ(human_time(999), "999ns");
    EXPECT_EQ(human_time(1'000), "1.00us");
    EXPECT_EQ(human_time(12'345), "12.3us");
    EXPECT_EQ(human_time(999'499), "999us");
    EXPECT_EQ(human_time(999'999), "1.00ms");
    EXPECT_EQ(human_time(2'500'000'000), "2.50s");
    EXPECT_EQ(human_count(9'999), "9999");
    EXPECT_EQ(human_count(12'345), "12.3k");
    EXPECT_EQ(human_count(999'999), "1.00M");
}

TEST(BenchTable, MeanAndDeviationOverRepetitions) {
    const std::string table = bench_tables({bench("tas", "native", 0, 1'000), bench("tas", "native", 1, 3'000)});
    const std::string row = row_of(table, "tas/native");
    EXPECT_TRUE(sample::has(row, " 2000 ")) << table;
    EXPECT_TRUE(sample::has(row, " 70.7% ")) << table; // stdev of {1000, 3000} is 1414.2
    EXPECT_TRUE(sample::has(row, " 20.1 33.3 0.987 ")) << table;
    EXPECT_TRUE(sample::has(row, "    20    40     2 3.00ms ")) << table;
}

TEST(BenchTable, KicksTakenAreShownForEachCpu) {
    Json first = bench("pv-ticket", "xen", 0, 1'000), second = bench("pv-ticket", "xen", 1, 1'000);
    EXPECT_FALSE(sample::has(bench_tables({first}), "kicks taken"));
    first["kicks_taken"] = {1, 0, 30, 4};
    second["kicks_taken"] = {1, 0, 3, 4};
    const std::string table = bench_tables({first, second, bench("ticket", "native", 0, 1'000)});
    EXPECT_TRUE(sample::has(table, "kicks taken, vCPU by vCPU\npv-ticket/xen      2     0    33     8\n\n")) << table;
    second["kicks_taken"] = {1, -1, "many"};
    EXPECT_TRUE(sample::has(bench_tables({first, second}), "      1     0    30     4\n"));
    first["kicks_taken"] = std::vector<int>(39, 7);
    first["kicks_taken"].push_back(9);
    EXPECT_TRUE(sample::has(bench_tables({first}), "least 7, median 7, most 9 of 40 vCPUs"));
}

TEST(BenchTable, OtherCpuCountsAndEmulationAreOtherTables) {
    Json real = bench("tas", "native", 0, 1'000);
    real["timing"] = "real";
    const std::string table =
        bench_tables({bench("tas", "native", 0, 1'000), bench("tas", "native", 0, 1'000, 8), real});
    EXPECT_TRUE(sample::has(table, "4 vCPUs, on tcg (EMULATED"));
    EXPECT_TRUE(sample::has(table, "8 vCPUs, on tcg (EMULATED"));
    EXPECT_TRUE(sample::has(table, "4 vCPUs, on tcg\n"));
}

TEST(BenchTable, PercentilesComeFromTheImage) {
    const std::string table = bench_tables(
        {bench("tas", "native", 0, 1'000), histogram("tas", "wait", 1'500), histogram("tas", "handoff", 70)});
    EXPECT_TRUE(sample::has(row_of(table, "tas/native"), "1.50us 15.0us 150us 70ns 700ns ")) << table;
    EXPECT_TRUE(sample::has(table, "up to 35ns"));
}

TEST(BenchTable, SeveralRunsAreMergedByBuckets) {
    Json first = histogram("tas", "wait", 100, Json::parse("[[100,99],[5000,1]]"));
    Json second = histogram("tas", "wait", 900, Json::parse("[[900,901]]"));
    second["run"] = 2;
    const std::string row = row_of(bench_tables({bench("tas", "native", 0, 1), first, second}), "tas/native");
    EXPECT_TRUE(sample::has(row, " 900ns 900ns ")) << row;
    first.erase("buckets");
    const std::string bounded = bench_tables({bench("tas", "native", 0, 1), first, second});
    EXPECT_TRUE(sample::has(row_of(bounded, "tas/native"), "<900ns")) << bounded;
    EXPECT_TRUE(sample::has(bounded, "largest percentile of any run"));
}

TEST(BenchTable, MissingAndStrangeFieldsAreDashes) {
    const std::string table = bench_tables(
        {Json::parse(R"({"type":"bench","bench":"b","lock":"tas","acquisitions_per_s":"fast","halts":-1})"),
         Json::parse(R"({"type":"histogram","bench":"b","lock":"tas","what":"wait","buckets":[1,[2],["a",3]]})"),
         Json::parse(R"({"type":"histogram","bench":7,"what":[]})")});
    EXPECT_TRUE(sample::has(row_of(table, "tas"), "- ")) << table;
    EXPECT_EQ(bench_tables({}), "");
}

TEST(Summary, FitsATerminal) {
    std::vector<Json> records;
    for (const char* lock : {"tas", "unfair-pv-queued", "pv-queued-2014"})
        for (int rep = 0; rep < 3; ++rep) {
            Json record = bench(lock, "native", rep, 123'456'789);
            record["halts"] = 123'456'789;
            record["kicks"] = 123'456'789;
            record["spurious"] = 123'456;
            records.push_back(record);
        }
    for (const char* lock : {"tas", "unfair-pv-queued", "pv-queued-2014"})
        for (const char* what : {"wait", "handoff"})
            records.push_back(histogram(lock, what, 123'456));
    EXPECT_LE(widest(bench_tables(records)), 120u);
}

TEST(Summary, SaysWhatRanWhatFailedAndEndsWithTheVerdict) {
    const Results results = results_of(sample::parse(sample::failing()), {"nested-kvm", "emulated", {}, {}, 2, {}, {}});
    const std::string text = summary(results, Colour::off);
    EXPECT_TRUE(sample::has(text, "nested-kvm"));
    EXPECT_TRUE(sample::has(text, "4 vCPUs on 2 host CPUs"));
    EXPECT_TRUE(sample::has(text, "EMULATED"));
    EXPECT_TRUE(sample::has(text, "FAIL    lock.mutual_exclusion/tas/native: two CPUs inside"));
    EXPECT_TRUE(sample::has(text, "1: no PV_UNHALT"));
    EXPECT_TRUE(text.ends_with("FAIL: 3 of 5 tests passed, 1 failed, 1 skipped; times are emulated\n")) << text;
    EXPECT_FALSE(sample::has(text, "\x1b"));
    EXPECT_TRUE(sample::has(summary(results, Colour::on), "\x1b[1;31mFAIL\x1b[0m"));
}

TEST(Summary, OfARealRunSaysNothingOfEmulation) {
    const Results results = results_of(sample::parse(sample::passing()), {"kvm", "real", {}, {}, {}, {}, {}});
    const std::string text = summary(results, Colour::off);
    EXPECT_FALSE(sample::has(text, "EMULATED"));
    EXPECT_TRUE(text.ends_with("PASS: 4 of 5 tests passed, 1 skipped\n")) << text;
}

TEST(Summary, OfACrashNamesTheReason) {
    const std::string log = sample::without_verdict(sample::passing());
    const Results results = results_of(sample::parse(log.substr(0, log.find("ok 3")) + "PANIC: #PF at 0x10\n"),
                                       {"tcg", "emulated", {}, {}, {}, {1, 1}, {}});
    const std::string text = summary(results, Colour::off);
    EXPECT_TRUE(sample::has(text, "\nCRASH: PANIC: #PF at 0x10; test 3 lock.mutual_exclusion/tas/native was running; "))
        << text;
}

TEST(Summary, OfSeveralRunsIsOne) {
    std::vector<Results> parts;
    for (std::uint32_t run = 1; run <= 3; ++run)
        parts.push_back(results_of(sample::parse(run == 2 ? sample::failing() : sample::passing()),
                                   {"tcg", "emulated", {}, {}, {}, {run, {}}, {}}));
    const std::string text = summary(merge(std::move(parts)), Colour::off);
    EXPECT_TRUE(sample::has(text, "3 runs")) << text;
    EXPECT_TRUE(sample::has(text, "3: 2 PASS, 1 FAIL")) << text;
    EXPECT_TRUE(sample::has(text, "two CPUs inside (run 2)")) << text;
    EXPECT_TRUE(sample::has(text, "FAIL: 11 of 15 tests passed, 1 failed, 3 skipped")) << text;
}

} // namespace
} // namespace spinkick::report
