// SPDX-License-Identifier: BSD-2-Clause
//
// bench_recorder [ROUNDS [MILLISECONDS]]: what the flight recorder costs a lock. Two threads contend for a lock, plain
// and traced with the recorder on, in turns; the load is that of bench.contention (2 us of work in the section and 2 us
// between two). Prints the change of acquisitions per second with its 95 % interval, and the bare cost of a traced
// lock/unlock pair that nobody contends for.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernel/stress/flight_recorder.hpp"
#include "kernel/stress/traced_lock_code.hpp"
#include "kernel/sync/locks.hpp"
#include "tests/host/backend_threads.hpp"

namespace spinkick::host {
namespace {

using Clock = std::chrono::steady_clock;

struct alignas(64) Log {
    stress::FlightRing ring;
    std::uint64_t written = 0;
};
constinit std::array<Log, 4> logs{};

/// SpinningThreads with a flight recorder, as the image's back ends have one.
struct Recording : SpinningThreads {
    static constexpr const char* kName = "threads-recording";
    static void record(sync::FlightEvent event, std::uint32_t argument) noexcept {
        if (!stress::flight_recording.load(std::memory_order_relaxed))
            return;
        auto& log = logs[index(this_cpu())];
        log.ring.put(log.written++, Tsc{__builtin_ia32_rdtsc()}, event, argument);
    }
};

/// Each on a line of its own: beside a word that the work reads, a lock is slower by a miss, plain or traced.
template <class L>
alignas(64) constinit L the_lock{};

alignas(64) std::uint64_t units_of_2us = 0;

/// Counted work, the same with and without the recorder.
void work() {
    for (std::uint64_t n = units_of_2us; n != 0; --n)
        benchmark::DoNotOptimize(n); // the loop stays a loop
}

void calibrate() {
    units_of_2us = 1'000'000;
    auto fastest = Clock::duration::max();
    for (int i = 0; i < 5; ++i) {
        const auto begin = Clock::now();
        work();
        fastest = std::min(fastest, Clock::now() - begin);
    }
    units_of_2us = static_cast<std::uint64_t>(2e-6 / std::chrono::duration<double>(fastest).count() * 1e6);
}

/// Acquisitions per second of two threads.
template <class L>
double contend(std::chrono::milliseconds span) {
    std::atomic<bool> stop{false};
    std::array<std::uint64_t, 2> acquired{};
    std::array<std::thread, 2> threads;
    const auto begin = Clock::now();
    for (std::uint32_t n = 0; n < 2; ++n)
        threads[n] = std::thread([&, n] {
            this_thread_cpu.id = CpuId{n};
            std::uint64_t count = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                the_lock<L>.lock();
                work();
                the_lock<L>.unlock();
                work();
                ++count;
            }
            acquired[n] = count;
        });
    std::this_thread::sleep_for(span);
    stop.store(true, std::memory_order_relaxed);
    for (auto& thread : threads)
        thread.join();
    const std::chrono::duration<double> elapsed = Clock::now() - begin;
    return static_cast<double>(acquired[0] + acquired[1]) / elapsed.count();
}

/// Nanoseconds of a pair without contention or work.
template <class L>
double bare_pair() {
    constexpr int kPairs = 1'000'000;
    const auto begin = Clock::now();
    for (int i = 0; i < kPairs; ++i) {
        the_lock<L>.lock();
        the_lock<L>.unlock();
    }
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kPairs;
}

template <class L>
void compare(int rounds, std::chrono::milliseconds span) {
    using Traced = stress::Traced<L>;
    std::vector<double> changes;
    for (int round = 0; round < rounds; ++round) {
        // In turns, and each first as often as the other: a busy second of the machine falls on both.
        const bool plain_first = round % 2 == 0;
        double plain = plain_first ? contend<L>(span) : 0;
        const double traced = contend<Traced>(span);
        if (!plain_first)
            plain = contend<L>(span);
        changes.push_back((traced / plain - 1) * 100);
    }
    double mean = 0, squares = 0;
    for (const double change : changes)
        mean += change / static_cast<double>(changes.size());
    for (const double change : changes)
        squares += (change - mean) * (change - mean);
    const double error = 1.96 * std::sqrt(squares / static_cast<double>(changes.size() - 1)) /
                         std::sqrt(static_cast<double>(changes.size()));
    std::sort(changes.begin(), changes.end());
    std::printf("%-10s %+8.2f %% +- %.2f   %+8.2f %%   %10.1f %10.1f\n", L::kName, mean, error,
                changes[changes.size() / 2], bare_pair<L>(), bare_pair<Traced>());
}

} // namespace
} // namespace spinkick::host

int main(int argc, char** argv) {
    using namespace spinkick::host;
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
    const int span = argc > 2 ? std::atoi(argv[2]) : 100;
    if (rounds < 2 || span < 1 || argc > 3) {
        std::fprintf(stderr, "usage: bench_recorder [ROUNDS, 2 or more [MILLISECONDS]]\n");
        return 2;
    }
    calibrate();
    std::printf("%d rounds of %d ms each, plain and traced in turns, 2 threads\n", rounds, span);
    std::printf("%-10s %-20s   %-10s   %10s %10s\n", "lock", "acquisitions/s", "median", "pair ns", "traced ns");
    compare<spinkick::sync::TasLock<Recording>>(rounds, std::chrono::milliseconds(span));
    compare<spinkick::sync::TicketLock<Recording>>(rounds, std::chrono::milliseconds(span));
    compare<spinkick::sync::QueuedLock<Recording>>(rounds, std::chrono::milliseconds(span));
    return 0;
}
