// SPDX-License-Identifier: BSD-2-Clause
//
// Uncontended lock/unlock pairs of our spinning locks beside their peers in ConcurrencyKit, in one interleaved run:
//
//   bench_locks                      times, and the ratio ours / ck per pair of peers
//   bench_locks --pairs N            runs each subject N times and prints nothing: for an instruction count by
//   callgrind
//
// The peers: tas - ck fas, ticket - ck ticket, queued - ck mcs. ck's mcs keeps its node with the caller and touches it
// in every pair, contended or not; that is MCS, and what a queued lock is there to avoid.

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernel/sync/locks.hpp"
#include "tests/host/backend_threads.hpp"
#include "tests/host/bench_ck_pairs.h"

namespace spinkick::host {
namespace {

using Null = sync::NullLock<SpinningThreads>;
using Tas = sync::TasLock<SpinningThreads>;
using Ticket = sync::TicketLock<SpinningThreads>;
using Queued = sync::QueuedLock<SpinningThreads>;

template <class L>
alignas(64) constinit L lock_of;

/// The body of every measurement, the same as in bench_ck_pairs.c; not inlined, so that callgrind counts it by its
/// name.
template <class L>
[[gnu::noinline]] void lock_unlock_pairs(std::uint64_t pairs) {
    for (; pairs != 0; --pairs) {
        lock_of<L>.lock();
        lock_of<L>.unlock();
        benchmark::ClobberMemory(); // the loop stays a loop even over a lock without instructions
    }
}

struct Subject {
    const char* name;
    void (*pairs)(std::uint64_t);
};
constexpr std::array<Subject, 7> kSubjects{{{"null", lock_unlock_pairs<Null>},
                                            {"tas", lock_unlock_pairs<Tas>},
                                            {"ck_fas", ck_fas_pairs},
                                            {"ticket", lock_unlock_pairs<Ticket>},
                                            {"ck_ticket", ck_ticket_pairs},
                                            {"queued", lock_unlock_pairs<Queued>},
                                            {"ck_mcs", ck_mcs_pairs}}};

constexpr std::uint64_t kPairsPerIteration = 1000;

struct Peers {
    const char* ours;
    const char* theirs;
};
constexpr std::array<Peers, 3> kPeers{{{"tas", "ck_fas"}, {"ticket", "ck_ticket"}, {"queued", "ck_mcs"}}};

/// Prints as usual, and keeps the medians for the ratios. CPU time: a neighbour on the machine must not count.
class RatioReporter : public benchmark::ConsoleReporter {
  public:
    RatioReporter() : ConsoleReporter(isatty(STDOUT_FILENO) == 1 ? OO_ColorTabular : OO_Tabular) {}

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs)
            if (run.aggregate_name == "median")
                medians_[run.run_name.function_name] = run.GetAdjustedCPUTime() / kPairsPerIteration;
        ConsoleReporter::ReportRuns(runs);
    }

    void print_ratios() {
        std::printf("\nMedian CPU time of a lock/unlock pair; goal of the ratio: at most 1.05\n");
        std::printf("%-8s %-10s %10s %10s %8s\n", "lock", "peer", "ours ns", "peer ns", "ratio");
        for (const Peers& peers : kPeers) {
            const double ours = medians_[peers.ours];
            const double theirs = medians_[peers.theirs];
            if (ours == 0 || theirs == 0)
                continue; // filtered out
            std::printf("%-8s %-10s %10.2f %10.2f %8.3f\n", peers.ours, peers.theirs, ours, theirs, ours / theirs);
        }
    }

  private:
    std::map<std::string, double> medians_;
};

} // namespace
} // namespace spinkick::host

int main(int argc, char** argv) {
    using namespace spinkick::host;

    if (argc > 1 && std::strcmp(argv[1], "--pairs") == 0) {
        const std::uint64_t pairs = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
        if (pairs == 0) {
            std::fprintf(stderr, "bench_locks: --pairs wants a number of pairs, 1 or more\n");
            return 2;
        }
        for (const Subject& subject : kSubjects)
            subject.pairs(pairs);
        return 0;
    }

    for (const Subject& subject : kSubjects) {
        benchmark::RegisterBenchmark(subject.name, [subject](benchmark::State& state) {
            for ([[maybe_unused]] auto _ : state)
                subject.pairs(kPairsPerIteration);
            state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPairsPerIteration));
        });
    }

    // Interleaved, so that a busy minute of the machine falls on all of them; later options on the command line win.
    std::vector<std::string> words{argv[0], "--benchmark_repetitions=20", "--benchmark_enable_random_interleaving=true",
                                   "--benchmark_min_time=0.02", "--benchmark_report_aggregates_only=true"};
    words.insert(words.end(), argv + 1, argv + argc);
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
        return 2;

    RatioReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    reporter.print_ratios();
    return 0;
}
