// SPDX-License-Identifier: BSD-2-Clause
//
// Results of benchmarks that never ran, for the tests of what compares, tabulates and draws them. The figures have what
// real ones have: a long tail, a slow moment now and then, and boots that differ by more than their repetitions do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report::sample {

struct Bench {
    std::string platform = "nested-kvm";
    std::string timing = "emulated";
    std::vector<std::pair<std::string, std::string>> locks = {{"null", "native"},   {"tas", "native"},
                                                              {"ticket", "native"}, {"queued", "native"},
                                                              {"pv-queued", "kvm"}, {"byte", "kvm"}};
    std::uint32_t boots = 1;
    std::uint32_t guests = 1;
    std::uint32_t repetitions = 3;
    std::uint64_t cpus = 4;
    std::uint64_t pcpus = 2;
    std::uint32_t seed = 1;
    double spread = 0.05;                     ///< of the logarithm of a repetition's throughput
    double boot_spread = 0;                   ///< of that of a whole boot
    double busy = 1;                          ///< factor for all locks in the second half of the repetitions of a boot
    double slow_moments = 0;                  ///< part of the repetitions that got a third of the throughput
    std::map<std::string, double> speed = {}; ///< factor for single locks, such as "queued/native"
    bool buckets = true;
    bool host_counters = false; ///< of KVM, in each measurement
};

/// Standard normal numbers that are the same with every standard library, which std::normal_distribution is not.
class Normal {
  public:
    explicit Normal(std::uint32_t seed) : bits_(seed) {}
    double operator()() {
        double sum = -6;
        for (int i = 0; i < 12; ++i)
            sum += uniform();
        return sum;
    }
    double uniform() { return static_cast<double>(bits_()) / 4294967296.0; }

  private:
    std::mt19937 bits_;
};

inline Json histogram_of(double p50, Normal& normal, bool with_buckets) {
    constexpr int kSamples = 2000;
    std::vector<std::uint64_t> samples;
    for (int i = 0; i < kSamples; ++i)
        samples.push_back(static_cast<std::uint64_t>(p50 * std::exp(1.2 * normal())));
    std::sort(samples.begin(), samples.end());
    const auto at = [&samples](double part) {
        return samples[static_cast<std::size_t>(part * static_cast<double>(samples.size() - 1))];
    };
    Json record = {{"count", samples.size()}, {"p50_ns", at(0.5)},        {"p90_ns", at(0.9)}, {"p99_ns", at(0.99)},
                   {"p999_ns", at(0.999)},    {"max_ns", samples.back()}, {"max_cpu", 0}};
    if (!with_buckets)
        return record;
    std::map<std::uint64_t, std::uint64_t> buckets;
    for (std::uint64_t sample : samples) {
        std::uint64_t width = 1;
        while (sample / width >= 64)
            width *= 2;
        ++buckets[sample / width * width];
    }
    record["buckets"] = Json::array();
    for (const auto& [lowest, count] : buckets)
        record["buckets"].push_back({lowest, count});
    return record;
}

inline Results bench_results(const Bench& bench) {
    Normal normal(bench.seed);
    Results results;
    for (std::uint32_t boot = 1; boot <= bench.boots; ++boot)
        for (std::uint32_t guest = 1; guest <= bench.guests; ++guest) {
            RunId id;
            if (bench.boots > 1)
                id.run = boot;
            if (bench.guests > 1)
                id.vm = guest;
            results.runs.push_back({id, bench.platform, bench.timing, Word::PASS, "", {}});
            results.tests.push_back({id, "bench.contention", Status::pass, "", 1'000'000'000});
            const auto put = [&](Json record, const char* type) {
                record["type"] = type;
                record["platform"] = bench.platform;
                record["timing"] = bench.timing;
                record["pcpus"] = bench.pcpus;
                if (id.run)
                    record["run"] = *id.run;
                if (id.vm)
                    record["vm"] = *id.vm;
                results.records.push_back(std::move(record));
            };
            put({{"schema", 1},
                 {"version", "0123abc"},
                 {"preset", "release"},
                 {"compiler", "g++ 12.2.0"},
                 {"boot", "pvh"},
                 {"cpu_model", "<Sample> & \"CPU\""},
                 {"cpus", bench.cpus},
                 {"tsc_khz", 2'000'000 + boot},
                 {"hypervisors", Json::parse(R"([{"name":"KVM","base":1073741824,"max":1073741825}])")},
                 {"spin_threshold", 32768}},
                "context");
            const double boot_factor = std::exp(bench.boot_spread * normal());
            std::vector<double> own(bench.locks.size());
            for (std::uint32_t rep = 0; rep < bench.repetitions; ++rep)
                for (std::size_t i = 0; i < bench.locks.size(); ++i) {
                    const auto& [lock, backend] = bench.locks[i];
                    const auto speed = bench.speed.find(lock + "/" + backend);
                    own[i] = 20'000.0 * static_cast<double>(i + 1) * boot_factor *
                             (speed == bench.speed.end() ? 1.0 : speed->second);
                    double rate =
                        own[i] * std::exp(bench.spread * normal()) * (2 * rep < bench.repetitions ? 1 : bench.busy);
                    if (normal.uniform() < bench.slow_moments)
                        rate /= 3;
                    const bool sleeps = backend != "native";
                    const auto acquisitions = static_cast<std::uint64_t>(rate / 10);
                    const auto share = 1000 / bench.cpus;
                    Json record{
                        {"bench", "contention"},
                        {"lock", lock},
                        {"backend", backend},
                        {"rep", rep},
                        {"cpus", bench.cpus},
                        {"duration_ns", 100'000'000},
                        {"acquisitions", acquisitions},
                        {"acquisitions_per_s", static_cast<std::uint64_t>(rate)},
                        {"share_min_permille", share / 2},
                        {"share_max_permille", share + share / 4},
                        {"jain_permille", 900 + static_cast<int>(normal.uniform() * 99)},
                        {"longest_gap_ns", 1'000'000},
                        {"longest_run", 10},
                        {"halts", sleeps ? acquisitions / 100 + static_cast<std::uint64_t>(normal.uniform() * 9) : 0},
                        {"kicks", sleeps ? acquisitions / 90 + static_cast<std::uint64_t>(normal.uniform() * 9) : 0},
                        {"pv_kick_wake", sleeps ? acquisitions / 100 : 0},
                        {"pv_latency_wake", // in ticks of 2 GHz: some 5 us for each wake
                         sleeps ? static_cast<std::uint64_t>(static_cast<double>(acquisitions / 100) * 10'000 *
                                                             (0.9 + 0.2 * normal.uniform()))
                                : 0},
                        {"spurious", 0},
                        {"steal_ns", static_cast<std::uint64_t>(100'000'000 * normal.uniform())}};
                    if (bench.host_counters)
                        record.update({{"host_halt_exits", (sleeps ? acquisitions / 90 : 0) + bench.cpus},
                                       {"host_halt_wakeup", bench.cpus},
                                       {"host_directed_yield_attempted", sleeps ? acquisitions / 90 : 0},
                                       {"host_directed_yield_successful", sleeps ? acquisitions / 200 : 0}});
                    put(std::move(record), "bench");
                }
            for (std::size_t i = 0; i < bench.locks.size(); ++i)
                for (const char* what : {"wait", "handoff"}) {
                    Json record = histogram_of(4e7 / own[i] * std::exp(bench.spread * normal()), normal, bench.buckets);
                    record.update({{"bench", "contention"},
                                   {"lock", bench.locks[i].first},
                                   {"backend", bench.locks[i].second},
                                   {"what", what},
                                   {"skew_ns", 120}});
                    put(std::move(record), "histogram");
                }
        }
    return results;
}

} // namespace spinkick::report::sample
