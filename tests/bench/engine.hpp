// SPDX-License-Identifier: BSD-2-Clause
//
// What all workloads have in common: the locks as rows of a table, one measurement of one lock on several CPUs, and its
// record. Each workload is a body for the workers and a record of its own on top of that.
//
//   repetitions     outermost, then what the workload varies, then the locks: a slow moment of the host hits all locks
//   a measurement   interval of the job, what the lock events and steal time of all CPUs grew by in it
//   a verdict       about counts: everybody began, every section was counted, nobody stood still
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <type_traits>

#include "kernel/clock.hpp"
#include "kernel/json.hpp"
#include "kernel/machine.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/counters.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/sync_point.hpp"
#include "tests/lock/lock_test.hpp"

namespace spinkick::bench {

/// The plain lock: what a traced one costs more is not of its algorithm.
template <class L>
inline constinit L measured_lock{};

// --- the locks ------------------------------------------------------------------------------------------------------

/// A lock as a row of a workload's table.
struct Row {
    const char* lock;
    const char* backend;
    test::Backend needs;
    bool excludes; ///< false: the floor, which locks nothing
    /// One measurement. False: a stall, which the context knows of.
    bool (*run)(test::TestContext&, std::uint32_t count);
};

/// The null lock first: what the harness itself costs bounds every figure below it.
using MeasuredLocks =
    sync::ConcatLists<sync::TypeList<sync::NullLock<paravirt::Native>>, lock_tests::ExcludingLocks>::type;

/// Workload<L>::run for every lock of the list.
template <template <class> class Workload, class List = MeasuredLocks>
consteval auto rows_of() noexcept {
    return lock_tests::table_of(
        []<class L>() {
            return Row{L::kName, L::Machine::kName, paravirt::need_of<typename L::Machine>(), L::kExcludes,
                       Workload<L>::run};
        },
        List{});
}

/// It can run here, and locks= names it or is not given.
[[nodiscard]] bool is_selected(const Row& row) noexcept;

/// Repetitions of a workload: repeat=, or three.
[[nodiscard]] std::uint32_t repetitions() noexcept;
/// CPUs that contend: all from the first-th on, at most bench_cpus=.
[[nodiscard]] std::uint32_t contenders(std::uint32_t first = 0) noexcept;

// --- one measurement ------------------------------------------------------------------------------------------------

/// Time that the hypervisor gave to others, all CPUs together.
[[nodiscard]] Nanoseconds total_steal() noexcept;
/// Kicks that the waits of each CPU took, since boot.
[[nodiscard]] std::array<std::uint64_t, kMostBenchCpus> kicks_taken() noexcept;

struct Interval {
    Nanoseconds duration{};
    Nanoseconds steal{};
    counters::Snapshot events{};
    std::array<std::uint64_t, kMostBenchCpus> kicks_taken{}; ///< by each of the first online CPUs, in their order
    std::optional<std::uint32_t> sync_begin{}, sync_end{};   ///< sync points around it, if the host was asked
};

/// Measures what happens between start() and stop(), while no worker runs yet or any more.
class Meter {
  public:
    void start() noexcept {
        sync_begin_ = test::sync_point();
        (void)counts_.reset();
        kicks_taken_ = kicks_taken();
        steal_ = total_steal();
        begin_ = clock::now();
    }
    [[nodiscard]] Interval stop() noexcept {
        const auto duration = clock::now() - begin_;
        auto taken = kicks_taken();
        for (std::size_t i = 0; i < taken.size(); ++i)
            taken[i] -= kicks_taken_[i];
        const auto steal = total_steal() - steal_;
        const auto counts = counts_.reset();
        return {duration, steal, counts, taken, sync_begin_, test::sync_point()};
    }

  private:
    std::optional<std::uint32_t> sync_begin_;
    counters::Reader counts_;
    std::array<std::uint64_t, kMostBenchCpus> kicks_taken_{};
    Nanoseconds steal_{}, begin_{};
};

/// A T in the scratch memory of a worker's CPU.
template <class T>
[[nodiscard]] T& scratch(std::uint32_t worker, std::uint32_t first = 0) noexcept {
    static_assert(sizeof(T) <= 48 * 1024, "fits a CPU's scratch memory");
    return *std::launder(reinterpret_cast<T*>(machine::scratch_of(workers::cpu_of(worker, first)).data()));
}
/// A fresh one for each worker.
template <class T>
void clear_scratch(std::uint32_t count, std::uint32_t first = 0) noexcept {
    for (std::uint32_t worker = 0; worker < count; ++worker)
        new (machine::scratch_of(workers::cpu_of(worker, first)).data()) T{};
}

/// Where workers begin together. Who did not come in time makes the measurement an error.
class Start {
  public:
    void set(std::uint32_t count) noexcept {
        barrier_.reset();
        count_ = count;
        late_.store(0, std::memory_order_relaxed);
    }
    /// For the body: false, go home.
    [[nodiscard]] bool line_up() noexcept {
        if (barrier_.wait(count_))
            return true;
        late_.fetch_add(1, std::memory_order_relaxed); // read after the job
        return false;
    }
    /// False, with an error that says who: not all began.
    [[nodiscard]] bool all_began(test::TestContext& context, const Row& row) const noexcept;

  private:
    workers::Barrier barrier_{};
    std::uint32_t count_ = 0;
    std::atomic<std::uint32_t> late_{0};
};

/// Calls visit(lock) for a lock, or for each one of an array of locks.
template <class Object, class Visit>
void for_each_lock(Object& object, Visit visit) noexcept {
    if constexpr (requires { object.word(); })
        visit(object);
    else
        for (auto& lock : object)
            visit(lock);
}

/// Runs the body on `count` CPUs for about `duration`; a stall is a failure of the lock, which is usable again
/// afterwards. kObject is the lock of type L that the body uses, or an array of them.
template <class L, auto& kObject = measured_lock<L>>
[[nodiscard]] bool contend(test::TestContext& context, std::uint32_t count, workers::Body body, Nanoseconds duration,
                           std::uint32_t first = 0) noexcept {
    constexpr Nanoseconds kToEnd = seconds(60); // a body that is over() comes to its end meanwhile
    workers::Job job;
    job.body = body;
    job.count = count;
    job.first = first;
    job.duration = duration;
    job.deadline = duration + kToEnd;
    job.describe = [](void*) noexcept {
        for_each_lock(kObject, [](const L& lock) { stress::log_lock(&lock, stress::kind_of<L>()); });
    };
    const auto outcome = workers::run(job);
    if (outcome.all_completed())
        return true;
    std::uint64_t word = 0;
    for_each_lock(kObject, [&word](L& lock) {
        word = word == 0 ? lock.word() : word;
        std::destroy_at(&lock);
        std::construct_at(&lock);
    });
    context.fail("%s/%s: stall: CPU %u stood still, %u of %u workers had to be rescued, lock word 0x%llx", L::kName,
                 L::Machine::kName, raw(outcome.first_stalled), outcome.rescued, outcome.started,
                 static_cast<unsigned long long>(word));
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        lock_tests::reset_cpu<L>(machine::online_cpu(n));
    return false;
}

// --- its record -----------------------------------------------------------------------------------------------------

/// For one record after the other: as long as a histogram with its buckets.
[[nodiscard]] std::span<char> record_storage() noexcept;

/// What every record of type `bench` has (docs/report-format.md). `shares` are the acquisitions of each CPU.
void add_who(JsonLine& json, const char* bench, const Row& row, std::uint32_t rep, std::uint32_t cpus) noexcept;
void add_acquisitions(JsonLine& json, Nanoseconds duration, std::span<const std::uint64_t> shares) noexcept;
void add_events(JsonLine& json, const Interval& interval) noexcept;

} // namespace spinkick::bench
