// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/host/sample_results.hpp"
#include "tools/distribution.hpp"
#include "tools/page.hpp"
#include "tools/page_data.hpp"

namespace spinkick::report {
namespace {

using sample::Bench;
using sample::bench_results;

const Json* lock_in(const Json& group, std::string_view name) {
    for (const Json& lock : group.at("locks"))
        if (lock.at("name") == name)
            return &lock;
    return nullptr;
}

std::string cell(const Json& data, std::string_view label, std::size_t column = 0) {
    for (const Json& row : data.at("context").at("rows"))
        if (row.at("label") == label)
            return row.at("cells").at(column).get<std::string>();
    return "";
}

TEST(PageData, HasEveryFigureOfEveryLock) {
    const Json data = page_data(bench_results(Bench{}));
    EXPECT_EQ(data.at("emulated"), true);
    ASSERT_EQ(data.at("groups").size(), 1u);
    const Json& group = data.at("groups")[0];
    EXPECT_EQ(group.at("title"), "contention, 4 vCPUs on 2 host CPUs, nested-kvm");
    EXPECT_EQ(group.at("factor"), 2.0);
    EXPECT_EQ(group.at("repetitions"), 3);
    EXPECT_EQ(group.at("locks").size(), 6u);
    const Json* lock = lock_in(group, "pv-queued/kvm");
    ASSERT_NE(lock, nullptr);
    EXPECT_EQ(lock->at("per_second").at("values").size(), 3u);
    EXPECT_EQ(lock->at("share"), Json::parse("[12.5, 31.2]"));
    for (const char* key : {"jain", "halts", "kicks", "steal", "kick_to_run"})
        EXPECT_EQ(lock->at(key).at("values").size(), 3u) << key;
    EXPECT_NEAR(lock->at("halts").at("mean").get<double>(), 10, 1); // one in a hundred acquisitions
    EXPECT_EQ(data.at("overcommit").size(), 0u);
}

TEST(PageData, HasWhatTheHostCountedIfItDid) {
    Bench bench;
    const Json without = page_data(bench_results(bench));
    EXPECT_FALSE(lock_in(without.at("groups")[0], "pv-queued/kvm")->contains("host_halt_exits"));
    bench.host_counters = true;
    const Json data = page_data(bench_results(bench));
    const Json& group = data.at("groups")[0];
    const Json* lock = lock_in(group, "pv-queued/kvm");
    for (const char* key :
         {"host_halt_exits", "host_halt_wakeup", "host_directed_yield_attempted", "host_directed_yield_successful"})
        EXPECT_EQ(lock->at(key).at("values").size(), 3u) << key;
    EXPECT_NEAR(lock->at("host_directed_yield_attempted").at("mean").get<double>(), 1000.0 / 90, 0.2);
}

TEST(PageData, ADistributionGoesFromNothingToAll) {
    for (const bool buckets : {true, false}) {
        Bench bench;
        bench.buckets = buckets;
        const Json data = page_data(bench_results(bench));
        const Json& wait = data.at("groups")[0].at("locks")[1].at("wait");
        const Json& points = wait.at("points");
        EXPECT_EQ(wait.at("buckets"), buckets);
        ASSERT_GE(points.size(), 5u);
        EXPECT_TRUE(std::is_sorted(points.begin(), points.end()));
        EXPECT_EQ(points.back()[1], 1.0);
        EXPECT_EQ(points.back()[0], wait.at("max"));
        EXPECT_EQ(points.size() > 5, buckets);
    }
}

TEST(PageData, PointsStandAtTheUpperBordersOfBuckets) {
    Distribution distribution;
    distribution.add(Json::parse(R"({"count":4,"p50_ns":64,"p99_ns":660,"max_ns":650,"buckets":[[64,3],[640,1]]})"));
    const auto points = distribution.cumulative();
    ASSERT_EQ(points.size(), 3u);
    EXPECT_EQ(points[0].ns, 64u);
    EXPECT_DOUBLE_EQ(points[0].part, 0);
    EXPECT_EQ(points[1].ns, 66u);
    EXPECT_DOUBLE_EQ(points[1].part, 0.75);
    EXPECT_EQ(points[2].ns, 650u); // not beyond the largest value
    EXPECT_DOUBLE_EQ(points[2].part, 1);
    EXPECT_TRUE(Distribution{}.cumulative().empty());
}

TEST(PageData, OtherNumbersOfCpusAreCurvesAndOtherImagesAreNot) {
    std::vector<Results> parts;
    for (const std::uint64_t cpus : {8u, 2u, 4u}) {
        Bench bench;
        bench.cpus = cpus;
        parts.push_back(bench_results(bench));
    }
    Json data = page_data(merge(parts));
    EXPECT_EQ(data.at("groups").size(), 3u);
    ASSERT_EQ(data.at("overcommit").size(), 1u);
    const Json& points = data.at("overcommit")[0].at("locks")[0].at("points");
    ASSERT_EQ(points.size(), 3u);
    EXPECT_EQ(points[0].at("factor"), 1.0);
    EXPECT_EQ(points[2].at("factor"), 4.0);
    EXPECT_EQ(data.at("context").at("boots").size(), 1u);
    EXPECT_EQ(cell(data, "vCPUs"), "2, 4, 8");

    // Another image is another configuration, with bars of its own.
    for (Json& record : parts[0].records)
        if (record.at("type") == "context")
            record["version"] = "fedcba9";
    parts.resize(2);
    parts[1] = bench_results(Bench{});
    for (Json& record : parts[0].records)
        if (record.contains("cpus"))
            record["cpus"] = 4;
    data = page_data(merge(parts));
    EXPECT_EQ(data.at("groups").size(), 2u);
    EXPECT_EQ(data.at("groups")[1].at("title"), "contention, 4 vCPUs on 2 host CPUs, nested-kvm, configuration 2");
    EXPECT_EQ(data.at("groups")[0].at("repetitions"), 3);
    EXPECT_EQ(cell(data, "spinkick", 0), "fedcba9");
    EXPECT_EQ(cell(data, "spinkick", 1), "0123abc");
}

TEST(PageData, TheContextCanBeRead) {
    const Json data = page_data(bench_results(Bench{}));
    EXPECT_EQ(cell(data, "hypervisors"), "KVM at 0x40000000");
    EXPECT_EQ(cell(data, "CPU"), "<Sample> & \"CPU\"");
    EXPECT_EQ(cell(data, "spin threshold"), "32768");
}

TEST(PageData, NamesWhatDidNotPass) {
    Results results = bench_results(Bench{});
    results.tests.push_back({{}, "lock.fifo/ticket/native", Status::fail, "served 2 before 1", {}});
    results.tests.push_back({{}, "lock.fifo/queued/native", Status::not_run, "", {}});
    results.tests.push_back({{}, "lock.fifo/tas/native", Status::skip, "claims no order", {}});
    results.runs[0].word = Word::FAIL;
    results.runs[0].notes = {"interrupt shadow lost 2 times"};
    const Json data = page_data(results);
    EXPECT_EQ(data.at("verdict").at("word"), "FAIL");
    ASSERT_EQ(data.at("tests").at("troubles").size(), 2u);
    EXPECT_EQ(data.at("tests").at("troubles")[0].at("name"), "lock.fifo/ticket/native");
    EXPECT_EQ(data.at("tests").at("troubles")[1].at("status"), "not run");
    EXPECT_EQ(data.at("tests").at("skips")[0].at("reason"), "claims no order");
    EXPECT_EQ(data.at("verdict").at("notes").size(), 1u);
}

TEST(PageData, MarksABusyHost) {
    Bench bench;
    bench.repetitions = 8;
    EXPECT_EQ(page_data(bench_results(bench)).at("groups")[0].at("noise").size(), 0u);
    bench.busy = 0.4;
    EXPECT_EQ(page_data(bench_results(bench)).at("groups")[0].at("noise").size(), 1u);
}

TEST(PageData, StrangeRecordsAreLeftOut) {
    Results results = bench_results(Bench{});
    results.records = {
        Json::parse(R"({"type":"bench","lock":7,"acquisitions_per_s":"fast","acquisitions":0,"cpus":0})"),
        Json::parse(R"({"type":"histogram","what":"wait","buckets":[[1]],"count":-3})"),
        Json::parse(R"({"type":"context","backends":[1,2],"hypervisors":{}})")};
    const Json data = page_data(results);
    ASSERT_EQ(data.at("groups").size(), 1u);
    ASSERT_EQ(data.at("groups")[0].at("locks").size(), 1u);
    for (const char* key : {"per_second", "halts", "steal", "share", "wait"})
        EXPECT_TRUE(data.at("groups")[0].at("locks")[0].at(key).is_null()) << key;
}

TEST(Page, DataCannotEndTheScriptThatHoldsIt) {
    const std::string text = json_for_script({{"reason", "</script><!-- \xff"}});
    EXPECT_EQ(text.find('<'), std::string::npos);
    EXPECT_EQ(Json::parse(text).at("reason"), "</script><!-- \xef\xbf\xbd");
}

} // namespace
} // namespace spinkick::report
