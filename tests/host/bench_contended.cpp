// SPDX-License-Identifier: BSD-2-Clause
//
// bench_contended [ROUNDS [MILLISECONDS]]: acquisitions per second of our spinning locks beside their peers in
// ConcurrencyKit (tas - ck fas, ticket - ck ticket, queued - ck mcs), when 2 and when 8 threads want one lock; both
// sides in turns, 0.2 us of work in the section and as much between two. With 2 threads and a CPU for each the goal is
// a ratio of 0.95 or more, and one below ends this with 1; 8 threads are printed and not judged, since with fewer CPUs
// it is the scheduler that is measured.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kernel/sync/locks.hpp"
#include "tests/host/backend_threads.hpp"
#include "tests/host/bench_ck_contended.h"

namespace spinkick::host {
namespace {

using Clock = std::chrono::steady_clock;
using Contend = std::uint64_t (*)(const std::uint32_t* stop, std::uint64_t units);

constexpr double kGoal = 0.95;

/// Waits as the peers do, by PAUSE alone: the tests' threads give their CPU away now and then.
struct Pausing : SpinningThreads {
    static void relax() noexcept { __builtin_ia32_pause(); }
};

template <class L>
alignas(64) constinit L the_lock{};

/// As CK_CONTEND in bench_ck_contended.c.
template <class L>
std::uint64_t contend(const std::uint32_t* stop, std::uint64_t units) {
    std::uint64_t count = 0;
    for (; __atomic_load_n(stop, __ATOMIC_RELAXED) == 0; ++count) {
        the_lock<L>.lock();
        contended_work(units);
        the_lock<L>.unlock();
        contended_work(units);
    }
    return count;
}

struct Peers {
    const char* ours;
    const char* theirs;
    Contend our_side, their_side;
};
constexpr std::array<Peers, 3> kPeers{{
    {"tas", "ck fas", contend<sync::TasLock<Pausing>>, ck_fas_contend},
    {"ticket", "ck ticket", contend<sync::TicketLock<Pausing>>, ck_ticket_contend},
    {"queued", "ck mcs", contend<sync::QueuedLock<Pausing>>, ck_mcs_contend},
}};

/// Rounds of contended_work() that take 0.2 us.
std::uint64_t units_of_work() {
    constexpr std::uint64_t kTried = 1'000'000;
    auto fastest = Clock::duration::max();
    for (int i = 0; i < 5; ++i) {
        const auto begin = Clock::now();
        contended_work(kTried);
        fastest = std::min(fastest, Clock::now() - begin);
    }
    return static_cast<std::uint64_t>(0.2e-6 / std::chrono::duration<double>(fastest).count() * kTried);
}

double acquisitions_per_s(Contend body, std::uint32_t count, std::uint64_t units, std::chrono::milliseconds span) {
    alignas(64) std::uint32_t stop = 0;
    std::vector<std::uint64_t> acquired(count);
    std::vector<std::thread> threads;
    const auto begin = Clock::now();
    for (std::uint32_t n = 0; n < count; ++n)
        threads.emplace_back([&, n] {
            this_thread_cpu.id = CpuId{n};
            acquired[n] = body(&stop, units);
        });
    std::this_thread::sleep_for(span);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED); // the threads' counts are read after join()
    for (auto& thread : threads)
        thread.join();
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    double sum = 0;
    for (const std::uint64_t each : acquired)
        sum += static_cast<double>(each);
    return sum / elapsed.count();
}

struct Ratio {
    double median, mean, error; ///< error: half of the mean's 95 % interval
};

/// ours / theirs, round by round.
Ratio ratio_of(const Peers& peers, std::uint32_t count, std::uint64_t units, int rounds,
               std::chrono::milliseconds span) {
    std::vector<double> ratios;
    for (int round = 0; round < rounds; ++round) {
        // In turns, and each first as often as the other: a busy second of the machine falls on both.
        const bool ours_first = round % 2 == 0;
        const double first = acquisitions_per_s(ours_first ? peers.our_side : peers.their_side, count, units, span);
        const double second = acquisitions_per_s(ours_first ? peers.their_side : peers.our_side, count, units, span);
        ratios.push_back(ours_first ? first / second : second / first);
    }
    double mean = 0, squares = 0;
    for (const double ratio : ratios)
        mean += ratio / static_cast<double>(ratios.size());
    for (const double ratio : ratios)
        squares += (ratio - mean) * (ratio - mean);
    std::sort(ratios.begin(), ratios.end());
    const auto values = static_cast<double>(ratios.size());
    return {ratios[ratios.size() / 2], mean, 1.96 * std::sqrt(squares / (values - 1) / values)};
}

} // namespace
} // namespace spinkick::host

int main(int argc, char** argv) {
    using namespace spinkick::host;
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
    const int span = argc > 2 ? std::atoi(argv[2]) : 50;
    if (rounds < 2 || span < 1 || argc > 3) {
        std::fprintf(stderr, "usage: bench_contended [ROUNDS, 2 or more [MILLISECONDS]]\n");
        return 2;
    }
    const auto units = units_of_work();
    std::printf("acquisitions/s, ours / peer; %d rounds of %d ms each, in turns\n", rounds, span);
    std::printf("%-8s %-10s %7s %8s %8s %8s\n", "lock", "peer", "threads", "median", "mean", "+-");
    int below = 0;
    for (const std::uint32_t threads : {2u, 8u})
        for (const Peers& peers : kPeers) {
            const bool is_judged = threads == 2 && std::thread::hardware_concurrency() >= 2;
            const auto ratio = ratio_of(peers, threads, units, is_judged ? rounds : std::max(rounds / 4, 2),
                                        std::chrono::milliseconds(span));
            const bool is_below = is_judged && ratio.median < kGoal;
            below += is_below ? 1 : 0;
            std::printf("%-8s %-10s %7u %8.3f %8.3f %8.3f%s\n", peers.ours, peers.theirs, threads, ratio.median,
                        ratio.mean, ratio.error,
                        is_below    ? "   BELOW 0.95"
                        : is_judged ? ""
                                    : "   not judged");
            std::fflush(stdout); // eight threads take a while
        }
    return below == 0 ? 0 : 1;
}
