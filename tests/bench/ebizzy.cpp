// SPDX-License-Identifier: BSD-2-Clause
//
// bench.ebizzy: what a web application server does to a kernel. Each CPU takes a chunk from an allocator that all share
// behind one lock, fills memory of its own, searches it, and gives the chunk back; every few records it unmaps that
// memory as well, and every other CPU must flush its TLB before it may go on. As munmap() holds the lock of its address
// space until all have flushed, the allocator's is held so long. Records a second depend on two things that a
// hypervisor can spoil: a preempted holder of the lock, and a preempted vCPU that does not answer its IPI while all
// others wait.
//
//   bench.ebizzy      every lock
//   bench.waitearly   pv-queued only, under each policy of when a queued waiter halts early
//
// The memory is mapped a second time (machine::map_alias), so what is unmapped and flushed is real.
#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/log.hpp"
#include "kernel/splitmix64.hpp"
#include "kernel/stress/flight_recorder.hpp"
#include "tests/bench/engine.hpp"

namespace spinkick::bench {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kWords = kPageBytes / sizeof(std::uint64_t);
constexpr std::uint64_t kRecordsPerUnmap = 4;
constexpr std::uint32_t kChunks = kMostBenchCpus; ///< each CPU has one at a time

enum class Wrong : std::uint8_t { nothing, chunk_given_twice, no_chunk, not_found, no_alias, no_answer };

/// In its CPU's scratch memory, the page that has a second address first.
struct Worker {
    std::array<std::uint64_t, kWords> memory{};
    std::uint64_t records = 0, shootdowns = 0;
    Tsc shootdown{}; ///< in all of them
    Wrong wrong = Wrong::nothing;
    CpuId silent{}; ///< of no_answer
};

/// What a CPU is asked to do and what it is owed, on a line of its own.
struct alignas(64) Mailbox {
    std::atomic<std::uint64_t> flush_for{0}; ///< a bit for each worker that has unmapped its memory
    std::atomic<std::uint32_t> answers{0};   ///< to this worker's own shootdown
};
static_assert(kMostBenchCpus <= 64, "a bit each");

struct Shared {
    Start start{};
    std::uint32_t count = 0;
    std::uint64_t seed = 0;
    /// Behind the lock: chunks that are free, a bit each.
    alignas(64) std::uint64_t free_chunks = 0;
    /// Who has a chunk, by worker + 1: to see whether the lock excludes.
    std::array<std::atomic<std::uint32_t>, kChunks> owner{};
    std::array<Mailbox, kMostBenchCpus> mailboxes{};
    std::array<std::uint32_t, kMaxCpus> worker_of{}; ///< by CPU
};
constinit Shared shared{};

/// On every CPU that another one has asked: interrupts are masked.
void answer() noexcept {
    auto& own = shared.mailboxes[shared.worker_of[index(machine::this_cpu())]];
    // acquire: the mapping was taken away before.
    auto asking = own.flush_for.exchange(0, std::memory_order_acquire);
    for (std::uint32_t worker = 0; asking != 0; ++worker, asking >>= 1) {
        if ((asking & 1) == 0)
            continue;
        machine::flush_alias(workers::cpu_of(worker));
        shared.mailboxes[worker].answers.fetch_add(1, std::memory_order_release); // after the flush
    }
}

/// Before the watchdog says no more than that somebody stood still.
Nanoseconds time_to_answer() noexcept { return {workers::watchdog().value / 2}; }

/// Unmaps this worker's memory, on all CPUs. False: one did not answer. With the lock held: those who wait for it halt
/// or spin with interrupts on, and answer.
bool shoot_down(std::uint32_t worker, Worker& self) noexcept {
    const auto begin = machine::time_stamp();
    auto& answers = shared.mailboxes[worker].answers;
    answers.store(0, std::memory_order_relaxed); // whoever answers has seen the bit below
    machine::unmap_alias(machine::this_cpu());
    for (std::uint32_t other = 0; other < shared.count; ++other) {
        if (other == worker)
            continue;
        auto& asked = shared.mailboxes[other].flush_for;
        // acq_rel: publishes the entry; and if the box was not empty, its interrupt has not looked yet.
        if (asked.fetch_or(std::uint64_t{1} << worker, std::memory_order_acq_rel) == 0)
            machine::send_test_interrupt(workers::cpu_of(other));
    }
    const clock::Deadline deadline(time_to_answer());
    constexpr std::uint32_t kLooks = 1024; // between two looks at the clock
    for (std::uint32_t looks = 1; answers.load(std::memory_order_acquire) != shared.count - 1; ++looks) {
        machine::relax();
        if (looks % kLooks != 0 || !deadline.passed())
            continue;
        for (std::uint32_t other = 0; other < shared.count; ++other)
            if ((shared.mailboxes[other].flush_for.load(std::memory_order_relaxed) & (std::uint64_t{1} << worker)) != 0)
                self.silent = workers::cpu_of(other);
        return false;
    }
    self.shootdown = self.shootdown + (machine::time_stamp() - begin);
    ++self.shootdowns;
    return true;
}

/// The first free chunk; kChunks if there is none, which cannot be.
template <class L>
std::uint32_t take_chunk() noexcept {
    auto& lock = measured_lock<L>;
    lock.lock();
    std::uint32_t chunk = 0;
    while (chunk < kChunks && ((shared.free_chunks >> chunk) & 1) == 0)
        ++chunk;
    if (chunk < kChunks)
        shared.free_chunks &= ~(std::uint64_t{1} << chunk);
    lock.unlock();
    return chunk;
}

/// With `unmap`, also what shoot_down() does; false as there.
template <class L>
bool give_back(std::uint32_t chunk, bool unmap, std::uint32_t worker, Worker& self) noexcept {
    auto& lock = measured_lock<L>;
    lock.lock();
    shared.free_chunks |= std::uint64_t{1} << chunk;
    const bool answered = !unmap || shoot_down(worker, self);
    lock.unlock();
    return answered;
}

/// Fills the memory with ascending numbers and finds one of them again through the second address.
bool fill_and_find(Worker& self, const std::uint64_t* alias, std::uint64_t random) noexcept {
    for (std::size_t i = 0; i < kWords; ++i)
        self.memory[i] = random % kWords + 2 * i;
    // The compiler may not know that both are the same memory.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint64_t wanted = random % kWords + 2 * (random % kWords);
    const volatile std::uint64_t* const begin = alias;
    std::size_t low = 0;
    for (std::size_t high = kWords; high - low > 1;) {
        const auto middle = low + (high - low) / 2;
        (begin[middle] <= wanted ? low : high) = middle;
    }
    return begin[low] == wanted;
}

template <class L>
Wrong serve(std::uint32_t worker, Worker& self) noexcept {
    const auto cpu = machine::this_cpu();
    auto random = splitmix64(shared.seed + worker);
    const auto* alias = reinterpret_cast<const std::uint64_t*>(machine::map_alias(cpu));
    do {
        if (alias == nullptr)
            return Wrong::no_alias;
        const auto chunk = take_chunk<L>();
        if (chunk == kChunks)
            return Wrong::no_chunk;
        if (shared.owner[chunk].exchange(worker + 1, std::memory_order_relaxed) != 0)
            return Wrong::chunk_given_twice;
        if (!fill_and_find(self, alias, random = splitmix64(random)))
            return Wrong::not_found;
        shared.owner[chunk].store(0, std::memory_order_relaxed); // the lock in give_back() publishes it
        const bool unmap = ++self.records % kRecordsPerUnmap == 0;
        if (!give_back<L>(chunk, unmap, worker, self))
            return Wrong::no_answer;
        if (unmap)
            alias = reinterpret_cast<const std::uint64_t*>(machine::map_alias(cpu));
        workers::progress();
    } while (!workers::over());
    return Wrong::nothing;
}

template <class L>
void work(std::uint32_t worker, void*) {
    auto& self = scratch<Worker>(worker);
    if (shared.start.line_up())
        self.wrong = serve<L>(worker, self);
}

template <class L>
struct Ebizzy {
    static bool run(test::TestContext& context, std::uint32_t count) {
        return contend<L>(context, count, work<L>, milliseconds(options::command_line().duration_ms));
    }
};

/// What is reported of the first worker that found something wrong.
void report(test::TestContext& context, const Row& row, std::uint32_t worker) noexcept {
    const auto& self = scratch<Worker>(worker);
    const auto cpu = raw(workers::cpu_of(worker));
    switch (self.wrong) {
    case Wrong::nothing:
        return;
    case Wrong::chunk_given_twice:
        return context.fail("%s/%s: the allocator gave a chunk to two CPUs at once", row.lock, row.backend);
    case Wrong::no_chunk:
        return context.fail("%s/%s: the allocator lost chunks", row.lock, row.backend);
    case Wrong::not_found:
        return context.fail("%s/%s: CPU %u did not find what it had stored", row.lock, row.backend, cpu);
    case Wrong::no_alias:
        return context.error("CPU %u: its memory could not be mapped a second time", cpu);
    case Wrong::no_answer:
        return context.fail("%s/%s: TLB shootdown by CPU %u: CPU %u did not answer its IPI within %llu ms", row.lock,
                            row.backend, cpu, raw(self.silent),
                            static_cast<unsigned long long>(time_to_answer().value / 1'000'000));
    }
}

/// False: the test is over.
bool measure(test::TestContext& context, const char* bench, const Row& row, std::uint32_t rep, std::uint32_t count) {
    clear_scratch<Worker>(count);
    shared.start.set(count);
    shared.count = count;
    shared.free_chunks = ~std::uint64_t{0}; // no worker runs yet
    for (auto& owner : shared.owner)
        owner.store(0, std::memory_order_relaxed);
    for (auto& box : shared.mailboxes)
        box.flush_for.store(0, std::memory_order_relaxed);
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        shared.worker_of[index(workers::cpu_of(worker))] = worker;
        // One after the other: the first one may have to add a table to the page tables.
        if (machine::map_alias(workers::cpu_of(worker)) == nullptr) {
            context.error("CPU %u: its memory could not be mapped a second time", raw(workers::cpu_of(worker)));
            return false;
        }
    }
    machine::set_test_interrupt(answer);
    Meter meter;
    meter.start();
    if (!row.run(context, count))
        return false;
    const auto interval = meter.stop();
    if (!shared.start.all_began(context, row))
        return false;

    std::array<std::uint64_t, kMostBenchCpus> shares{};
    std::uint64_t records = 0, shootdowns = 0;
    Tsc shootdown{};
    for (std::uint32_t worker = 0; worker < count; ++worker) {
        const auto& self = scratch<Worker>(worker);
        report(context, row, worker);
        shares[worker] = 2 * self.records; // the allocator's lock, for each record twice
        records += self.records;
        shootdowns += self.shootdowns;
        shootdown = shootdown + self.shootdown;
        machine::unmap_alias(workers::cpu_of(worker));
    }
    if (context.status() != test::Status::none)
        return false;
    if (shared.free_chunks != ~std::uint64_t{0})
        context.fail("%s/%s: chunks 0x%llx were not given back", row.lock, row.backend,
                     static_cast<unsigned long long>(~shared.free_chunks));

    JsonLine json(record_storage(), "bench");
    add_who(json, bench, row, rep, count);
    json.number("records", records)
        .number("records_per_s", records * 1'000'000 / (interval.duration.value / 1'000 + 1));
    json.number("shootdowns", shootdowns);
    json.number("shootdown_ns_mean", shootdowns == 0 ? 0 : clock::to_nanoseconds({shootdown.value / shootdowns}).value);
    add_acquisitions(json, interval.duration, {shares.data(), count});
    add_events(json, interval);
    (void)json.emit(); // a record that did not fit has said so
    return context.status() == test::Status::none;
}

// Not the floor: without a lock the allocator would be broken at once.
constexpr auto kRows = rows_of<Ebizzy, lock_tests::ExcludingLocks>();

void run(test::TestContext& context) {
    const auto count = contenders();
    const stress::FlightRecording off(false);
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep) {
        shared.seed = context.seed() + rep * kMaxCpus;
        for (const auto& row : kRows)
            if (is_selected(row) && !measure(context, "ebizzy", row, rep, count))
                return;
    }
    context.pass();
}

// --- bench.waitearly ------------------------------------------------------------------------------------------------

template <class L>
struct ObeysWaitEarly : std::bool_constant<std::string_view(L::kName) == "pv-queued"> {};
constexpr auto kPolicyRows = rows_of<Ebizzy, typename lock_tests::Filter<ObeysWaitEarly, lock_tests::Locks>::type>();

struct Policy {
    sync::WaitEarly policy;
    const char* bench;
};
constexpr std::array kPolicies{Policy{sync::WaitEarly::off, "waitearly_off"},
                               Policy{sync::WaitEarly::state, "waitearly_state"},
                               Policy{sync::WaitEarly::preempted, "waitearly_preempted"}};

/// Puts the policy of the command line back.
class SavedPolicy {
  public:
    SavedPolicy() noexcept = default;
    ~SavedPolicy() { sync::tuning.wait_early.store(before_, std::memory_order_relaxed); }
    SavedPolicy(const SavedPolicy&) = delete;
    SavedPolicy& operator=(const SavedPolicy&) = delete;

  private:
    sync::WaitEarly before_ = sync::tuning.wait_early.load(std::memory_order_relaxed);
};

void run_policies(test::TestContext& context) {
    const auto count = contenders();
    const stress::FlightRecording off(false);
    const SavedPolicy saved;
    bool any = false;
    for (std::uint32_t rep = 0; rep < repetitions(); ++rep) {
        shared.seed = context.seed() + rep * kMaxCpus;
        for (const auto& policy : kPolicies) {
            sync::tuning.wait_early.store(policy.policy, std::memory_order_relaxed); // no worker runs
            for (const auto& row : kPolicyRows) {
                if (!is_selected(row))
                    continue;
                any = true;
                if (!measure(context, policy.bench, row, rep, count))
                    return;
            }
        }
    }
    if (any)
        context.pass();
    else
        context.skip("locks= leaves out pv-queued, the lock that obeys wait_early");
}

constexpr std::array kTests = {
    test::Test{.name = "bench.ebizzy",
               .claim = "an allocator gives no chunk out twice, and every TLB shootdown is answered; figures per lock",
               .run = run,
               .on_request = true},
    test::Test{.name = "bench.waitearly",
               .claim = "the same with pv-queued under each policy of wait_early; figures per policy",
               .run = run_policies,
               .on_request = true}};
constinit const test::TestGroup ebizzy_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(ebizzy_group);

} // namespace spinkick::bench
