// SPDX-License-Identifier: BSD-2-Clause
//
// The tables of the workloads, over figures as they were published for the locks that this project is about.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tools/io_table.hpp"
#include "tools/jobs_table.hpp"
#include "tools/micro_table.hpp"
#include "tools/mixed_table.hpp"
#include "tools/steal.hpp"
#include "tools/summary.hpp"
#include "tools/waitearly_table.hpp"

namespace spinkick::report {
namespace {

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

Results results_of(std::vector<Json> records, std::uint32_t guests = 1) {
    Results results;
    results.records = std::move(records);
    for (std::uint32_t guest = 1; guest <= guests; ++guest)
        results.runs.push_back({{std::nullopt, guests > 1 ? std::optional{guest} : std::nullopt},
                                "nested-kvm",
                                "real",
                                Word::PASS,
                                "",
                                {}});
    return results;
}

/// What every record of a workload has.
Json record(const char* bench, const char* lock, const char* backend, std::uint64_t cpus, int rep = 0) {
    return {{"type", "bench"},
            {"bench", bench},
            {"lock", lock},
            {"backend", backend},
            {"rep", rep},
            {"cpus", cpus},
            {"pcpus", 2},
            {"platform", "nested-kvm"},
            {"timing", "real"},
            {"halts", 0},
            {"kicks", 0},
            {"spurious", 0},
            {"jain_permille", 0},
            {"steal_ns", 0},
            {"acquisitions_per_s", 1}};
}

Json micro(const char* lock, const char* backend, std::uint64_t tasks, std::uint64_t ms, int rep = 0,
           std::uint64_t undone = 0) {
    constexpr std::uint64_t kPairs = 5'000'000;
    Json json = record("micro", lock, backend, tasks, rep);
    json.update({{"pairs", kPairs}, {"duration_ns", ms * 1'000'000}, {"acquisitions", kPairs * tasks - undone}});
    return json;
}

std::vector<Json> published_micro(const char* backend = "kvm") {
    return {micro("ticket", "native", 8, 7736),  micro("pv-ticket", backend, 8, 11323),
            micro("queued", "native", 8, 6037),  micro("pv-queued", backend, 8, 6097),
            micro("tas", "native", 8, 1),        micro("ticket", "native", 1, 135),
            micro("pv-ticket", backend, 1, 179), micro("queued", "native", 1, 137),
            micro("pv-queued", backend, 1, 169)};
}

TEST(MicroTable, HasThePublishedRows) {
    const MicroTable table = micro_table(results_of(published_micro()));
    EXPECT_TRUE(table.problems.empty());
    ASSERT_EQ(table.blocks.size(), 1u);
    ASSERT_EQ(table.blocks[0].rows.size(), 2u);
    const std::string text = text_of(table);
    EXPECT_TRUE(has(text, "micro, ms for 5000000 lock/unlock pairs by each task")) << text;
    EXPECT_TRUE(
        has(text, "    1       0.5x         135     -   179     -    +32.6        137     -  169     -    +23.4"))
        << text;
    EXPECT_TRUE(
        has(text, "    8         4x        7736     - 11323     -    +46.4       6037     - 6097     -     +1.0"))
        << text;
}

TEST(MicroTable, MeansAndDeviationsOverTheRepetitions) {
    auto records = published_micro();
    records.push_back(micro("ticket", "native", 1, 145, 1));
    const std::string text = text_of(micro_table(results_of(std::move(records))));
    EXPECT_TRUE(has(text, "140  7.07   179     -    +27.9")) << text;
}

TEST(MicroTable, ReckonsWhatTheTimeDidNotSufficeFor) {
    auto records = published_micro();
    records[0] = micro("ticket", "native", 8, 7736, 0, 30'000'000); // 10 of 40 million pairs
    const std::string text = text_of(micro_table(results_of(std::move(records))));
    EXPECT_TRUE(has(text, "~30944     - 11323     -    -63.4")) << text;
}

TEST(MicroTable, ABlockForEachBackEndTheHypervisorsFirst) {
    auto records = published_micro("ipi");
    for (Json& json : published_micro("kvm"))
        if (json["backend"] == "kvm")
            records.push_back(std::move(json));
    const MicroTable table = micro_table(results_of(std::move(records)));
    EXPECT_TRUE(table.problems.empty());
    ASSERT_EQ(table.blocks.size(), 2u);
    EXPECT_EQ(table.blocks[0].backend, "kvm");
    EXPECT_EQ(table.blocks[1].backend, "ipi");
    EXPECT_EQ(table.blocks[1].rows.size(), 2u);
}

TEST(MicroTable, OtherNumbersOfPairsStandApart) {
    auto records = published_micro();
    for (Json json : published_micro()) {
        json["pairs"] = 10;
        records.push_back(std::move(json));
    }
    EXPECT_EQ(micro_table(results_of(std::move(records))).blocks.size(), 2u);
}

TEST(MicroTable, NamesWhatIsMissing) {
    EXPECT_TRUE(has(micro_table(results_of({})).problems.at(0), "bench.micro"));
    EXPECT_EQ(text_of(MicroTable{}), "");
    auto records = published_micro();
    records.erase(records.begin() + 1); // pv-ticket at 8
    const MicroTable table = micro_table(results_of(std::move(records)));
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_EQ(table.problems[0], "no figures of pv-ticket/kvm (micro, 8 vCPUs on 2 host CPUs, nested-kvm)");
    EXPECT_TRUE(has(text_of(table), "7736     -   -     -        -"));
    EXPECT_TRUE(has(text_of(table), "problem     no figures of pv-ticket/kvm"));
    const MicroTable plain = micro_table(results_of({micro("ticket", "native", 1, 135)}));
    EXPECT_EQ(plain.problems.size(), 3u);
    EXPECT_TRUE(has(text_of(plain), "PV on: did not run"));
}

TEST(MicroTable, ZeroPairsAreNoTime) {
    auto records = published_micro();
    records[0]["acquisitions"] = 0;
    EXPECT_EQ(micro_table(results_of(std::move(records))).problems.size(), 1u);
}

TEST(MicroTable, TheSummaryShowsEveryLock) {
    const std::string text = summary(results_of(published_micro()), Colour::off);
    EXPECT_TRUE(has(text, "lock/back end   1     8")) << text;
    EXPECT_TRUE(has(text, "pv-ticket/kvm 179 11323")) << text;
    EXPECT_TRUE(has(text, "tas/native      -  1.00")) << text;
    EXPECT_FALSE(has(text, "acqui-")) << text; // not among the open-ended ones
}

/// AIM7 as it was published, on ext4: 20 vCPUs, twice as many as CPUs.
Json jobs(const char* lock, const char* backend, std::uint64_t per_minute, double real_s, double sys_s, double usr_s,
          int rep = 0) {
    Json json = record("jobs_heavy", lock, backend, 4, rep);
    const auto ns = [](double s) { return static_cast<std::uint64_t>(s * 1e9); };
    json.update({{"jobs", 3000},
                 {"sections_per_job", 10},
                 {"acquisitions", 30'000},
                 {"jobs_per_min", per_minute},
                 {"duration_ns", ns(real_s)},
                 {"sys_ns", ns(sys_s)},
                 {"usr_ns", ns(usr_s)},
                 {"slow_ppm", 700'000},
                 {"slow_wanted_ppm", 154'000},
                 {"think_ns", 1000}});
    return json;
}

std::vector<Json> published_jobs(const char* backend = "kvm") {
    return {jobs("tas", "native", 130'000, 140, 2000, 30),
            jobs("queued", "native", 54995, 327.30, 5023.58, 54.73),
            jobs("unfair-queued", "native", 467411, 38.51, 481.80, 25.80),
            jobs("pv-ticket", backend, 120984, 148.78, 2378.98, 29.27),
            jobs("pv-queued-2014", backend, 124215, 144.91, 2282.22, 28.89),
            jobs("unfair-pv-queued", backend, 471080, 38.21, 482.40, 25.09)};
}

TEST(JobsTable, HasThePublishedRows) {
    const JobsTable table = jobs_table(results_of(published_jobs()));
    EXPECT_TRUE(table.problems.empty());
    ASSERT_EQ(table.blocks.size(), 1u);
    std::vector<std::string> order;
    for (const JobsRow& row : table.blocks[0].rows)
        order.push_back(row.lock);
    EXPECT_EQ(order, (std::vector<std::string>{"pv-ticket/kvm", "queued/native", "pv-queued-2014/kvm",
                                               "unfair-queued/native", "unfair-pv-queued/kvm", "tas/native"}));
    const std::string text = text_of(table);
    EXPECT_TRUE(has(text, "jobs_heavy, 4 vCPUs on 2 host CPUs, nested-kvm, overcommit 2x: 3000 jobs")) << text;
    EXPECT_TRUE(has(text, "slow path 15.4% unless preempted")) << text;
    EXPECT_TRUE(has(text, "pv-ticket/kvm            121k     -        -  149s 2379s 29.3s        70.0")) << text;
    EXPECT_TRUE(has(text, "queued/native           55.0k     -    -54.5  327s 5024s 54.7s        70.0")) << text;
    EXPECT_TRUE(has(text, "unfair-queued/native     467k     -   +286.3 38.5s  482s 25.8s        70.0")) << text;
}

TEST(JobsTable, ReckonsWhatTheTimeDidNotSufficeFor) {
    auto records = published_jobs();
    records[1]["acquisitions"] = 15'000;
    const JobsTable table = jobs_table(results_of(std::move(records)));
    EXPECT_TRUE(has(text_of(table), "~655s ~10047s")) << text_of(table);
}

TEST(JobsTable, LoadsAndBackEndsStandApart) {
    auto records = published_jobs();
    for (Json& json : published_jobs("ipi"))
        records.push_back(std::move(json));
    for (Json json : published_jobs()) {
        json["bench"] = "jobs_light";
        records.push_back(std::move(json));
    }
    const JobsTable table = jobs_table(results_of(std::move(records)));
    ASSERT_EQ(table.blocks.size(), 3u);
    EXPECT_EQ(table.blocks[0].place.bench, "jobs_light");
    EXPECT_EQ(table.blocks[1].backend, "kvm");
    EXPECT_EQ(table.blocks[2].backend, "ipi");
    EXPECT_EQ(table.blocks[2].rows.size(), 6u);
}

TEST(JobsTable, MeansAndDeviations) {
    auto records = published_jobs();
    records.push_back(jobs("pv-ticket", "kvm", 120986, 148.78, 2378.98, 29.27, 1));
    const JobsTable table = jobs_table(results_of(std::move(records)));
    EXPECT_EQ(table.blocks[0].rows[0].per_minute.size(), 2u);
    EXPECT_TRUE(has(text_of(table), "121k     1        -")) << text_of(table);
}

TEST(JobsTable, NamesWhatIsMissing) {
    EXPECT_TRUE(has(jobs_table(results_of({})).problems.at(0), "bench.jobs"));
    auto records = published_jobs();
    records.erase(records.begin() + 3); // pv-ticket: nothing to compare with
    const JobsTable table = jobs_table(results_of(std::move(records)));
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_EQ(table.problems[0],
              "no figures of pv-ticket (jobs_heavy, 4 vCPUs on 2 host CPUs, nested-kvm, back end kvm)");
    EXPECT_FALSE(table.blocks[0].rows[0].change);
}

/// S2's guest with the newer kernel.
Json io(const char* lock, const char* backend, std::uint64_t per_second, int rep = 0) {
    Json json = record("io", lock, backend, 3, rep);
    json.update({{"operations", 1000},
                 {"operations_per_s", per_second},
                 {"interrupts", 500},
                 {"full", 0},
                 {"acquisitions", 1000},
                 {"halts", 250},
                 {"kicks", 300}});
    return json;
}

std::vector<Json> published_io() {
    return {io("queued", "native", 500'000), io("ticket", "native", 522'000), io("byte", "xen", 58'000),
            io("debug", "native", 205'000)};
}

TEST(IoTable, HasThePublishedRows) {
    const IoTable table = io_table(results_of(published_io()));
    EXPECT_TRUE(table.problems.empty());
    ASSERT_EQ(table.blocks.size(), 1u);
    const std::string text = text_of(table);
    EXPECT_TRUE(has(text, "io, 3 vCPUs on 2 host CPUs, nested-kvm, overcommit 1.5x: operations/s")) << text;
    EXPECT_TRUE(has(text, "debug/native  debugging on             205k     -        -")) << text;
    EXPECT_TRUE(has(text, "byte/xen      PV spinlocks on         58.0k     -    -71.7     0.25      0.3           0.5"))
        << text;
    EXPECT_TRUE(has(text, "ticket/native PV spinlocks off         522k     -   +154.6")) << text;
    EXPECT_LT(text.find("ticket/native"), text.find("queued/native")) << text;
}

Json stolen(const char* lock, std::uint64_t steal_ns, int rep) {
    Json json = record("contention", lock, "kvm", 4, rep);
    json.update({{"duration_ns", 1'000'000}, {"steal_ns", steal_ns}});
    return json;
}

TEST(Steal, IsAPartOfWhatTheVcpusHad) {
    EXPECT_FALSE(worst_steal({}));
    EXPECT_FALSE(
        worst_steal({Json{{"type", "bench"}, {"steal_ns", 5}, {"duration_ns", 0}, {"cpus", 4}}, io("byte", "xen", 1)}));
    const auto worst = worst_steal({stolen("tas", 100'000, 0), stolen("ticket", 1'528'000, 2), stolen("tas", 0, 1)});
    ASSERT_TRUE(worst);
    EXPECT_DOUBLE_EQ(worst->part, 0.382);
    EXPECT_EQ(text_of(*worst), "38.2 % steal in contention of ticket/kvm, repetition 2");
}

TEST(Steal, AboveItsLimitIsInTheSummary) {
    const auto text_with = [](const char* limit) {
        Json context = {{"type", "context"}, {"host", {{"kernel", "6.1"}}}};
        if (limit != nullptr)
            context["host"]["steal_limit"] = limit;
        return summary(results_of({context, stolen("ticket", 1'528'000, 0)}), Colour::off);
    };
    EXPECT_TRUE(has(text_with("38"),
                    "noisy       38.2 % steal in contention of ticket/kvm, repetition 0, above --steal-limit 38"));
    for (const char* limit : {"39", "100", "", "much", "3x"})
        EXPECT_FALSE(has(text_with(limit), "noisy")) << limit;
    EXPECT_FALSE(has(text_with(nullptr), "noisy"));
}

TEST(IoTable, IsInTheSummaryOfARunWhateverLocksItHad) {
    auto records = published_io();
    EXPECT_TRUE(has(summary(results_of(records), Colour::off), "byte/xen      PV spinlocks on"));
    records.pop_back();
    const std::string text = summary(results_of(records), Colour::off);
    EXPECT_TRUE(has(text, "byte/xen      PV spinlocks on"));
    EXPECT_FALSE(has(text, "problem")) << text;
    EXPECT_FALSE(has(summary(results_of({}), Colour::off), "PV spinlocks"));
}

TEST(IoTable, NamesWhatIsMissing) {
    EXPECT_TRUE(has(io_table(results_of({})).problems.at(0), "bench.io"));
    auto records = published_io();
    records.pop_back();
    const IoTable table = io_table(results_of(std::move(records)));
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_EQ(table.problems[0], "no figures of debug (io, 3 vCPUs on 2 host CPUs, nested-kvm)");
    EXPECT_FALSE(table.blocks[0].rows[0].change);
}

Json mixed(const char* lock, int rep, int hot, int pounded) {
    Json json = record("mixed", lock, "native", 4, rep);
    json.update({{"hot", hot}, {"pounded", pounded}, {"locks", Json::parse("[[100,1000],[400,80000],[100,2000]]")}});
    return json;
}

TEST(MixedTable, SaysWhichLockIsPounded) {
    const MixedTable table = mixed_table(results_of({mixed("tas", 0, 1, 1), mixed("tas", 1, 1, 2)}));
    ASSERT_EQ(table.blocks.size(), 1u);
    const MixedRow& row = table.blocks[0].rows.at(0);
    EXPECT_EQ(row.found, 1u);
    EXPECT_NEAR(row.hot_acquisitions.at(0), 4.0 / 6, 1e-9);
    EXPECT_NEAR(row.hot_wait.at(0), 80.0 / 83, 1e-9);
    EXPECT_NEAR(row.cold_wait_ns.at(0), 15, 1e-9);
    EXPECT_TRUE(has(text_of(table), "66.7         96.4 200ns       15ns  1 of 2")) << text_of(table);
}

TEST(MixedTable, NamesWhatIsMissing) {
    EXPECT_TRUE(has(mixed_table(results_of({})).problems.at(0), "bench.mixed"));
    Json no_list = mixed("tas", 0, 1, 1);
    no_list.erase("locks");
    Json bad_list = mixed("tas", 0, 1, 1);
    bad_list["locks"] = Json::parse("[[1,2],[3]]");
    for (const Json& json : {no_list, bad_list, mixed("tas", 0, 3, 1)}) {
        const MixedTable table = mixed_table(results_of({json}));
        ASSERT_EQ(table.problems.size(), 1u);
        EXPECT_TRUE(has(table.problems[0], "no hot lock in a record of tas/native"));
        EXPECT_FALSE(has(text_of(table), "of 0"));
    }
}

/// The counters of S3, 5 s apart.
Json waitearly(const char* policy, std::uint64_t per_second, int rep = 0) {
    Json json = record(policy, "pv-queued", "kvm", 4, rep);
    json.update({{"records_per_s", per_second}, {"shootdown_ns_mean", 20'000}, {"acquisitions", 1000}});
    return json;
}

std::vector<Json> published_waitearly() {
    Json preempted = waitearly("waitearly_preempted", 1750);
    preempted.update({{"pv_wait_again", 2},
                      {"pv_wait_early", 13145},
                      {"pv_wait_head", 4},
                      {"pv_wait_node", 13161},
                      {"pv_vcpu_is_preempted", 748}});
    return {std::move(preempted), waitearly("waitearly_off", 13000), waitearly("waitearly_state", 13500),
            waitearly("waitearly_state", 13600, 1)};
}

TEST(WaitEarlyTable, HasThePublishedRows) {
    const WaitEarlyTable table = waitearly_table(results_of(published_waitearly(), 3));
    EXPECT_TRUE(table.problems.empty());
    ASSERT_EQ(table.blocks.size(), 1u);
    const std::string text = text_of(table);
    EXPECT_TRUE(has(text, "pv-queued/kvm, waitearly, 3 guests of 4 vCPUs on 2 host CPUs, nested-kvm, overcommit 6x"))
        << text;
    EXPECT_TRUE(has(text, "preempted       1750     -    20.0us             2         13145            4        13161"))
        << text;
    EXPECT_TRUE(has(text, "748          5.69")) << text; // some 6 %
    EXPECT_TRUE(has(text, "state          13.6k    71")) << text;
    EXPECT_LT(text.find("\noff "), text.find("\nstate "));
    EXPECT_LT(text.find("\nstate "), text.find("\npreempted "));
}

TEST(WaitEarlyTable, NamesWhatIsMissing) {
    EXPECT_TRUE(has(waitearly_table(results_of({})).problems.at(0), "bench.waitearly"));
    auto records = published_waitearly();
    records.erase(records.begin() + 1);
    const WaitEarlyTable table = waitearly_table(results_of(std::move(records)));
    ASSERT_EQ(table.problems.size(), 1u);
    EXPECT_EQ(table.problems[0],
              "no figures of pv-queued/kvm with wait_early=off (waitearly, 4 vCPUs on 2 host CPUs, nested-kvm)");
}

} // namespace
} // namespace spinkick::report
