// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: SCHEDOP_poll in all its corners: a port of the polling vCPU, one of another vCPU, one above 63 (where the
// second word of the two-level form begins) and one above 1023 (the second page of the FIFO form's array), masked or
// not; pending before the poll, sent to during it, or not at all; beside another port of the vCPU that is pending,
// masked or not; with interrupts on and off. A poll ends by its port, whatever the rest is, and does not clear the
// pending bit; it lasts its time out if nobody sends. Every poll has a time limit of its own, so a hypervisor that
// forgets one of the corners (KVM's own poll did two) shows as a named cell and not as a hang.
#include "tests/paravirt/event_ports.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Xen;
using namespace event_ports;

constexpr std::array kPorts = {"own port", "other vCPU's port", "own port above 63", "own port above 1023"};
/// The lowest number that such a port may have; 0 for the first ones that Xen gives.
constexpr std::array<std::uint32_t, kPorts.size()> kLowest = {0, 0, 64, 1024};
constexpr std::array kMasks = {"masked", "unmasked"};
enum When : std::uint32_t { before, during, never };
constexpr std::array kWhens = {"sent to before", "sent to during", "never sent to"};
constexpr std::array kOthers = {"no other pending", "another pending, masked", "another pending, unmasked"};
constexpr std::array kModes = {"IF=1", "IF=0"};

constexpr std::uint32_t kCells = kPorts.size() * kMasks.size() * kWhens.size() * kOthers.size() * kModes.size();

/// One place of the matrix, numbered.
struct Cell {
    std::uint32_t port, mask, when, other, mode;
    static constexpr Cell at(std::uint32_t number) noexcept {
        const auto digit = [&number](std::size_t base) {
            const auto value = number % static_cast<std::uint32_t>(base);
            number /= static_cast<std::uint32_t>(base);
            return value;
        };
        Cell cell{};
        cell.mode = digit(kModes.size());
        cell.when = digit(kWhens.size());
        cell.mask = digit(kMasks.size());
        cell.other = digit(kOthers.size());
        cell.port = digit(kPorts.size());
        return cell;
    }
};

constexpr std::uint32_t kAttempts = 3;              ///< a cell that fails once was hit by something else
constexpr Nanoseconds kForSend = milliseconds(500); ///< limit of a poll that a send ends
/// Of one that nothing ends. Xen's CPUs may disagree about the time, under emulation by 3 ms for a second (its own
/// account of a sleep, in the runstate, was 2.8 ms for 0.14 ms of TSC), and the timer of a poll need not be on the
/// vCPU's CPU.
constexpr Nanoseconds kQuiet = milliseconds(6);
constexpr Nanoseconds kBudget = seconds(1); ///< for all cells; an idle host needs a third of it
constexpr std::uint32_t kMostLate = 3;      ///< times the limit: then a send ends a poll that nothing should
constexpr std::uint32_t kMostSpare = 1100;  ///< ports bound on the way to the highest one

struct Shared {
    Turn ready, sent, back;
    std::atomic<std::uint32_t> cell{0};
    std::atomic<bool> over{false};
    std::array<std::uint32_t, kPorts.size()> ports{};
    std::uint32_t other = kNoPort;
    std::array<std::uint32_t, kMostSpare> spare{};
    std::uint32_t spares = 0;
    std::uint64_t seed = 0;
    const char* failure = nullptr; ///< of `cell`
    Nanoseconds limit{};           ///< of the poll that is under way
    Nanoseconds deadline{};        ///< the end of it
    Nanoseconds lasted{};          ///< the last poll
    std::uint32_t late = 0;        ///< polls that had to be ended
    std::uint32_t tried = 0;
};
constinit Shared shared{};

/// Everything as if no port had ever been sent to.
void clean(std::uint32_t port) noexcept {
    for (const auto one : {port, shared.other}) {
        set_masked(one, true);
        clear_pending(one);
    }
    if (x86::xen_pv::is_active())
        return; // its own handler clears what belongs to the vCPU
    for (const auto worker : {kKicker, kSleeper})
        forget_announced(workers::cpu_of(worker, first_cpu()));
}

/// What went wrong; nullptr for nothing.
const char* try_cell(const Cell& cell, std::uint32_t round, std::uint32_t attempt) noexcept {
    // Longer each time: a poll that ends for no reason does so whatever its limit, while clocks that disagree do so by
    // a time of their own (docs/known-deviations.md).
    shared.limit = cell.when == never ? Nanoseconds{kQuiet.value << (2 * attempt)} : kForSend; // published by `ready`
    const auto port = shared.ports[cell.port];
    const auto state = B::disable_interrupts();
    clean(port);
    set_masked(port, cell.mask == 0);
    if (cell.other != 0) {
        set_masked(shared.other, cell.other == 1);
        (void)send(shared.other);
    }
    if (cell.mode == 0)
        B::restore_interrupts({.enabled = true});
    shared.ready.set(round);
    if (cell.when == before)
        shared.sent.await(round);
    const auto limit = shared.limit;
    const auto begin = system_time();
    shared.deadline = begin + limit;
    const auto result = poll(port, shared.deadline);
    const auto lasted = system_time() - begin;
    shared.lasted = lasted;
    shared.back.set(round);
    const bool was_pending = is_pending(port);
    shared.sent.await(round);
    B::restore_interrupts(state);
    clean(port);
    if (result != 0)
        return "the call returns an error";
    if (cell.when == never)
        return lasted.value * 3 < limit.value ? "ends for no reason" : nullptr;
    if (!was_pending)
        return lasted < limit ? "the pending bit is cleared" : "the send is lost";
    return lasted < limit ? nullptr : "does not end by its port";
}

void poller() noexcept {
    std::uint32_t round = 0;
    const clock::Deadline budget(kBudget);
    // Those that wait their time out come last: on a host that is late with its timers they take most of the budget.
    for (const bool waits : {false, true})
        for (std::uint32_t number = 0; number < kCells && shared.failure == nullptr && !budget.passed(); ++number) {
            const auto cell = Cell::at(number);
            if ((cell.when == never) != waits)
                continue;
            // What nobody sends to is looked at in the same place, whichever word or page the port stands in: owner
            // only.
            if (cell.when == never && kLowest[cell.port] != 0) {
                ++shared.tried;
                continue;
            }
            if (shared.ports[cell.port] == kNoPort) {
                ++shared.tried; // there is none; said at the end
                continue;
            }
            shared.cell.store(number, std::memory_order_relaxed); // published by `ready`
            for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
                ++round;
                shared.failure = try_cell(cell, round, attempt);
                workers::progress();
                if (shared.failure == nullptr)
                    break;
            }
            ++shared.tried;
        }
    shared.over.store(true, std::memory_order_relaxed); // published by `ready`
    shared.ready.set(round + 1);
}

void sender() noexcept {
    Random random(shared.seed);
    for (std::uint32_t round = 1;; ++round) {
        shared.ready.await(round);
        if (shared.over.load(std::memory_order_relaxed))
            return;
        const auto cell = Cell::at(shared.cell.load(std::memory_order_relaxed));
        if (cell.when == during)
            spin_for(microseconds(20 + random.below(100)));
        if (cell.when == never) {
            const clock::Deadline late(Nanoseconds{kMostLate * shared.limit.value});
            while (!shared.back.reached(round) && !late.passed())
                machine::relax();
            shared.late += shared.back.reached(round) ? 0u : 1u;
        }
        if (!shared.back.reached(round))
            (void)send(shared.ports[cell.port]);
        shared.sent.set(round);
        workers::progress();
    }
}

/// A port of `cpu` from `lowest` on; those on the way there are kept as spares. kNoPort if Xen refuses before.
std::uint32_t bind_from(std::uint32_t lowest, CpuId cpu) noexcept {
    while (true) {
        const auto port = bind_ipi(cpu);
        if (port == kNoPort || port >= lowest)
            return port;
        if (shared.spares == kMostSpare) {
            close_bound(port);
            return kNoPort;
        }
        shared.spare[shared.spares++] = port;
    }
}

/// Ports that only this test uses. False if Xen does not give them: but the highest one may be refused, since a domU
/// has no more ports than its toolstack allows (xl's max_event_channels).
bool bind_ports() noexcept {
    const auto poller_cpu = workers::cpu_of(kSleeper, first_cpu());
    shared.spares = 0;
    shared.ports[0] = bind_ipi(poller_cpu);
    shared.ports[1] = bind_ipi(workers::cpu_of(kKicker, first_cpu()));
    shared.other = bind_ipi(poller_cpu);
    shared.ports[2] = bind_from(kLowest[2], poller_cpu);
    shared.ports[3] = bind_from(kLowest[3], poller_cpu);
    return shared.ports[0] != kNoPort && shared.ports[1] != kNoPort && shared.ports[2] != kNoPort &&
           shared.other != kNoPort;
}

void close_ports() noexcept {
    for (const auto port : shared.ports)
        close(port);
    close(shared.other);
    for (std::uint32_t i = 0; i < shared.spares; ++i)
        close_bound(shared.spare[i]);
}

void run(test::TestContext& context) {
    if (vcpu_vector_given)
        return context.skip("%s", kVectorFact);
    shared.ready.reset(), shared.sent.reset(), shared.back.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.seed = context.seed();
    shared.failure = nullptr;
    shared.tried = 0;
    shared.late = 0;
    if (!bind_ports()) {
        close_ports();
        return context.error("EVTCHNOP_bind_ipi does not give %u ports", kLowest[2]);
    }
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? sender() : poller(); };
    workers::Job job;
    job.body = body;
    job.count = 2;
    job.first = first_cpu();
    const bool ended = workers::run(job).all_completed(); // no kick: there is nothing to add up
    const bool had_all = shared.ports.back() != kNoPort;
    close_ports();
    const auto cell = Cell::at(shared.cell.load(std::memory_order_relaxed));
    if (!ended)
        return context.fail("poll of %s, %s, %s, %s, %s: lasts, %llu us beyond its time out", kPorts[cell.port],
                            kMasks[cell.mask], kWhens[cell.when], kOthers[cell.other], kModes[cell.mode],
                            static_cast<unsigned long long>((system_time() - shared.deadline).value / 1000));
    if (shared.failure == nullptr && shared.tried < kCells)
        return context.skip("%u of %u cells in %llu ms", shared.tried, kCells,
                            static_cast<unsigned long long>(kBudget.value / 1'000'000));
    if (shared.failure == nullptr && shared.late != 0)
        return context.skip("%u polls of %llu us lasted three times as long and were ended; the other cells passed",
                            shared.late, static_cast<unsigned long long>(kQuiet.value / 1000));
    if (shared.failure == nullptr && !had_all)
        return context.skip(
            "Xen gives no port above %u (of a domU: max_event_channels in xl.cfg); the other cells passed",
            kLowest.back() - 1);
    if (shared.failure == nullptr)
        return context.pass();
    context.fail("poll of %s, %s, %s, %s, %s: %s, three times, last after %llu us", kPorts[cell.port],
                 kMasks[cell.mask], kWhens[cell.when], kOthers[cell.other], kModes[cell.mode], shared.failure,
                 static_cast<unsigned long long>(shared.lasted.value / 1000));
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.poll_ends_by_its_port",
               .backend = B::kName,
               .claim = "SCHEDOP_poll ends when its port is sent to, whoever owns or masks it, and not before",
               .min_cpus = 2,
               .needs = test::Backend::xen,
               .run = run}};
constinit const test::TestGroup xen_poll_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(xen_poll_group);

} // namespace spinkick::paravirt_tests
