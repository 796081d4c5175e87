// SPDX-License-Identifier: BSD-2-Clause
//
// What the lock tests do with a lock: a crew of threads, each one CPU, with a deadline; and two checks that the lock
// excludes. A shared counter alone would prove little: it comes out right over a lock that fails now and then.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/types.hpp"
#include "tests/host/backend_threads.hpp"

namespace spinkick::host {

using Clock = std::chrono::steady_clock;

/// Threads that are CPUs 0..n-1 and run `body(cpu)`. The destructor joins them; if that takes longer than the deadline,
/// the process ends with a line that names the test, since a stuck lock cannot be unstuck from here.
class Crew {
  public:
    static constexpr std::chrono::seconds kDeadline{150};

    Crew() = default;
    Crew(unsigned cpus, const std::function<void(CpuId)>& body) {
        for (unsigned n = 0; n < cpus; ++n)
            add(CpuId{n}, [body, n] { body(CpuId{n}); });
    }
    ~Crew() { join(); }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    void add(CpuId cpu, std::function<void()> body) {
        {
            const std::lock_guard guard(mutex_);
            ++running_;
        }
        threads_.emplace_back([this, cpu, body = std::move(body)] {
            this_thread_cpu = ThreadCpu{};
            this_thread_cpu.id = cpu;
            body();
            const std::lock_guard guard(mutex_);
            --running_;
            all_done_.notify_all();
        });
    }

    void join() {
        {
            std::unique_lock guard(mutex_);
            if (!all_done_.wait_for(guard, kDeadline, [this] { return running_ == 0; })) {
                const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
                std::fprintf(stderr, "%s.%s: %u threads still wait after %lld s: lost wake-up or dead-lock\n",
                             test->test_suite_name(), test->name(), running_,
                             static_cast<long long>(kDeadline.count()));
                std::_Exit(1);
            }
        }
        for (auto& thread : threads_)
            thread.join();
        threads_.clear();
    }

  private:
    std::mutex mutex_;
    std::condition_variable all_done_;
    unsigned running_ = 0;
    std::vector<std::thread> threads_;
};

/// Waits until `condition()`, at most `limit`. False: it did not happen.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(40)) {
    const auto end = Clock::now() + limit;
    while (!condition()) {
        if (Clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
}

/// Calls `step()` again and again for `duration`, at least once. Tests are bounded by time and not by a count: on a
/// loaded machine one hand-over of a FIFO lock among more threads than CPUs may take a whole time slice of a stranger.
template <class Step>
void repeat_for(std::chrono::milliseconds duration, Step step) {
    const auto end = Clock::now() + duration;
    do {
        step();
    } while (Clock::now() < end);
}

/// How the protected data is accessed. Plain data lets ThreadSanitizer judge as well; locks that are known not to
/// exclude use atomic data, so that what reports them is the check and not the tool.
template <bool kPlain>
class Cell {
  public:
    [[nodiscard]] std::uint32_t get() const { return value_; }
    void set(std::uint32_t value) { value_ = value; }

  private:
    volatile std::uint32_t value_ = 0; // volatile: every step is a real access, in order
};
template <>
class Cell<false> {
  public:
    [[nodiscard]] std::uint32_t get() const { return value_.load(std::memory_order_relaxed); }
    void set(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }

  private:
    std::atomic<std::uint32_t> value_{0};
};

/// The section under the lock. visit() says whether it was alone in there.
template <bool kPlain>
class ExclusionProbe {
  public:
    [[nodiscard]] bool visit(std::uint32_t token) {
        bool alone = true;

        // Torn value: what the last visitor wrote, it wrote whole.
        const std::uint32_t last = record_[0].get();
        for (const auto& part : record_)
            alone &= part.get() == last;
        for (auto& part : record_)
            part.set(token);

        // Ten stores up and ten down, each one checked: a second visitor shows at the step at which it comes in.
        for (std::uint32_t step = 0; step < 10; ++step) {
            alone &= steps_.get() == step;
            steps_.set(step + 1);
        }
        // Now and then the section lasts until somebody else has run: on a machine that is busy with other work two
        // threads of ours may hardly ever run at once.
        if (!kPlain || token % 64 == 0)
            std::this_thread::yield();
        for (std::uint32_t step = 10; step > 0; --step) {
            alone &= steps_.get() == step;
            steps_.set(step - 1);
        }

        for (const auto& part : record_)
            alone &= part.get() == token;
        return alone;
    }

  private:
    std::array<Cell<kPlain>, 16> record_{};
    Cell<kPlain> steps_{};
};

struct WorkoutResult {
    std::uint64_t visits = 0;
    std::uint64_t intrusions = 0;
};

/// `cpus` threads take the lock with `take(lock)` until `duration` is over, or until the first intrusion if so asked;
/// each of them once in any case, since on a loaded machine all the time may have passed before the last of them has
/// started.
template <class L, class Take>
WorkoutResult work_out(L& lock, unsigned cpus, std::chrono::milliseconds duration, bool until_intrusion, Take take) {
    ExclusionProbe<L::kExcludes> probe;
    std::atomic<std::uint64_t> intrusions{0};
    std::atomic<unsigned> ready{0};
    std::atomic<bool> stop{false};
    std::vector<std::uint64_t> visits(cpus);
    {
        Crew crew(cpus, [&](CpuId cpu) {
            ++ready;
            while (ready.load() < cpus)
                std::this_thread::yield();
            std::uint64_t mine = 0;
            while (mine == 0 || !stop.load(std::memory_order_relaxed)) {
                if (!take(lock))
                    continue;
                const bool alone = probe.visit(static_cast<std::uint32_t>(mine) * cpus + raw(cpu));
                lock.unlock();
                ++mine;
                if (!alone)
                    intrusions.fetch_add(1, std::memory_order_relaxed);
            }
            visits[index(cpu)] = mine;
        });
        const auto end = Clock::now() + duration;
        while (Clock::now() < end && !(until_intrusion && intrusions.load() != 0))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        stop = true;
    }
    WorkoutResult result{.visits = 0, .intrusions = intrusions.load()};
    for (const std::uint64_t mine : visits)
        result.visits += mine;
    return result;
}

} // namespace spinkick::host
