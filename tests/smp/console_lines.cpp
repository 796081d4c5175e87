// SPDX-License-Identifier: BSD-2-Clause
//
// smp.console_lines: lines from all CPUs and from interrupt handlers reach the console whole. On request: it prints
// 1,000 lines per CPU, each with its own checksum; the host side (tests/platforms) counts and checks them, since only
// it sees what arrived.
#include <array>
#include <atomic>

#include "kernel/crc32.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/test.hpp"
#include "kernel/text.hpp"

namespace spinkick::smp_tests {
namespace {

constexpr std::uint32_t kLines = 1000;
constexpr std::uint32_t kFromInterrupts = 100; ///< every tenth line

struct alignas(64) Count {
    std::atomic<std::uint32_t> from_interrupt{0};
};
constinit std::array<Count, kMaxCpus> counts{};

void print(std::uint32_t number, const char* context) noexcept {
    char text[120];
    TextBuffer line(text);
    format(line, "line cpu=%u n=%u from=%s the quick brown fox jumps over the lazy dog", raw(machine::this_cpu()),
           number, context);
    log("# console %s crc=%08x", line.c_str(), crc32(line.view()));
}

void work(std::uint32_t, void*) {
    auto& count = counts[index(machine::this_cpu())].from_interrupt;
    for (std::uint32_t n = 0; n < kLines; ++n) {
        if (n % (kLines / kFromInterrupts) == 0) {
            const auto before = count.load(std::memory_order_relaxed);
            machine::send_test_interrupt(machine::this_cpu());      // its handler prints line n
            while (count.load(std::memory_order_relaxed) == before) // same CPU: the watchdog bounds it
                machine::relax();
        } else {
            print(n, "task");
        }
        workers::progress();
    }
}

void run(test::TestContext& context) {
    for (auto& count : counts)
        count.from_interrupt.store(0, std::memory_order_relaxed);
    machine::set_test_interrupt([]() noexcept {
        auto& count = counts[index(machine::this_cpu())].from_interrupt;
        const auto n = count.load(std::memory_order_relaxed);
        print(n * (kLines / kFromInterrupts), "irq");
        count.store(n + 1, std::memory_order_relaxed);
    });
    workers::Job job;
    job.count = workers::available();
    job.body = work;
    job.deadline = seconds(300);
    const auto outcome = workers::run(job);
    log("# console lines printed: %u", kLines * outcome.completed);
    if (outcome.all_completed())
        context.pass();
    else
        context.fail("%u of %u CPUs finished their lines", outcome.completed, outcome.started);
}

constexpr std::array kTests = {test::Test{.name = "smp.console_lines",
                                          .claim = "a line is written whole, whoever else writes (counted on the host)",
                                          .run = run,
                                          .on_request = true}};
constinit const test::TestGroup console_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(console_group);

} // namespace spinkick::smp_tests
