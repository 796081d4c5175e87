// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/tsc.hpp"

#include <array>
#include <atomic>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/time_stamp.hpp"
#include "kernel/clock.hpp"

namespace spinkick::x86::tsc {
namespace {

constexpr std::uint64_t kAssumedKhz = 1'000'000;
constexpr std::uint64_t kPmTimerHz = 3'579'545; // ACPI 6.5, 4.8.3.3
constexpr std::uint32_t kPmTimerMask = 0xffffff;
constexpr std::uint64_t kPitHz = 1'193'182;
constexpr std::uint32_t kPollBound = 50'000'000;
constexpr unsigned kSkewRounds = 200;
constexpr std::uint64_t kSkewGoodEnoughNs = 2'000; // half a round trip; a quiet machine gets there at once

constinit std::uint64_t frequency_khz = kAssumedKhz;
constinit const char* frequency_source = "assumed";
constinit Tsc origin{};
constinit std::atomic<std::uint64_t> latest_ns{0};
constinit std::array<Skew, kMaxCpus> skews{};

constexpr std::uint64_t kSkewOver = ~0ull;

// One exchange of the skew measurement: the leader writes an odd turn, the follower answers with its counter and an
// even one.
constinit std::atomic<std::uint64_t> turn{0};
constinit std::atomic<std::uint64_t> answer{0};

std::uint64_t from_cpuid() noexcept {
    if (max_basic_leaf() >= 0x15) {
        const auto r = cpuid(0x15); // TSC = crystal * EBX / EAX
        if (r.eax != 0 && r.ebx != 0 && r.ecx != 0) {
            frequency_source = "CPUID leaf 0x15";
            return std::uint64_t{r.ecx} * r.ebx / r.eax / 1000;
        }
    }
    if (has_hypervisor() && cpuid(0x40000000).eax >= 0x40000010 && cpuid(0x40000000).eax < 0x40000100) {
        const auto r = cpuid(0x40000010); // EAX: TSC kHz
        if (r.eax != 0) {
            frequency_source = "CPUID leaf 0x40000010";
            return r.eax;
        }
    }
    if (max_basic_leaf() >= 0x16) {
        const auto r = cpuid(0x16); // EAX: base MHz
        if (r.eax != 0) {
            frequency_source = "CPUID leaf 0x16";
            return std::uint64_t{r.eax} * 1000;
        }
    }
    return 0;
}

/// Ticks between two moments of another timer, each of which is known to lie between two looks at the TSC: a vCPU that
/// is not run for a while between the timer and the counter makes the pair wide, and not the frequency wrong.
struct Span {
    std::uint64_t least = 0, most = 0;

    [[nodiscard]] std::uint64_t width() const noexcept { return most - least; }
    [[nodiscard]] std::uint64_t middle() const noexcept { return least + width() / 2; }
    [[nodiscard]] bool is_narrow() const noexcept { return width() < least / 128; }
};
constexpr unsigned kTries = 8; ///< at most; the narrowest counts

struct PmReading {
    Tsc before, after;
    std::uint32_t count = 0;
};
PmReading read_pm_timer(std::uint16_t port) noexcept {
    PmReading reading;
    reading.before = rdtsc_ordered();
    reading.count = inl(port) & kPmTimerMask;
    reading.after = rdtsc_ordered();
    return reading;
}

std::uint64_t from_pm_timer(std::uint16_t port) noexcept {
    constexpr std::uint32_t kLength = kPmTimerHz * 2 / 1000; // 2 ms
    std::uint64_t khz = 0;
    auto narrowest = ~std::uint64_t{0}; // width per tick of the PM timer, times 2^16
    for (unsigned n = 0; n < kTries; ++n) {
        const auto first = read_pm_timer(port);
        if (first.count == kPmTimerMask && read_pm_timer(port).count == kPmTimerMask)
            return 0; // reads all ones: no timer there
        PmReading last;
        std::uint32_t passed = 0;
        for (std::uint32_t i = 0; passed < kLength && i < kPollBound; ++i) {
            last = read_pm_timer(port);
            passed = (last.count - first.count) & kPmTimerMask;
        }
        if (passed < kLength)
            return 0;
        const Span span{(last.before - first.after).value, (last.after - first.before).value};
        if (const auto width = (span.width() << 16) / passed; width < narrowest) {
            narrowest = width;
            khz = span.middle() * kPmTimerHz / passed / 1000;
        }
        if (span.is_narrow())
            break;
    }
    frequency_source = "ACPI PM timer";
    return khz;
}

std::uint64_t from_pit() noexcept {
    constexpr std::uint16_t kGate = 0x61, kChannel2 = 0x42, kMode = 0x43;
    if (inb(kGate) == 0xff)
        return 0; // microvm and Xen dom0 have none: a calibration would never end
    constexpr std::uint16_t kCount = kPitHz * 10 / 1000;
    Span narrowest{0, ~std::uint64_t{0}};
    for (unsigned n = 0; n < kTries && !narrowest.is_narrow(); ++n) {
        outb(kGate, static_cast<std::uint8_t>((inb(kGate) & ~2u) | 1u)); // gate on, speaker off
        outb(kMode, 0xb0);                                               // channel 2, both bytes, mode 0
        outb(kChannel2, kCount & 0xff);
        const auto before_begin = rdtsc_ordered();
        outb(kChannel2, kCount >> 8);
        const auto after_begin = rdtsc_ordered();
        auto before_end = after_begin;
        std::uint32_t i = 0;
        for (auto now = after_begin; (inb(kGate) & 0x20) == 0 && i < kPollBound; ++i) {
            before_end = now; // the output was low at a look that began after this
            now = rdtsc_ordered();
        }
        const auto after_end = rdtsc_ordered();
        if (i == kPollBound)
            return 0;
        if (const Span span{(before_end - after_begin).value, (after_end - before_begin).value};
            span.width() < narrowest.width())
            narrowest = span;
    }
    frequency_source = "PIT";
    return narrowest.middle() * kPitHz / kCount / 1000;
}

} // namespace

void start() noexcept { origin = rdtsc(); }

bool calibrate(Source paravirt, std::uint16_t pm_timer_port) noexcept {
    auto found = paravirt.khz;
    if (found != 0)
        frequency_source = paravirt.name;
    if (found == 0)
        found = from_cpuid();
    if (found == 0 && pm_timer_port != 0)
        found = from_pm_timer(pm_timer_port);
    if (found == 0)
        found = from_pit();
    if (found == 0)
        return false;
    // All that was counted so far, was so at the assumed rate: from here on it is real time since the kernel's entry.
    // Nobody else runs and nobody waits, so the step is seen by no one.
    frequency_khz = found;
    latest_ns.store(0, std::memory_order_relaxed);
    return true;
}

std::uint64_t khz() noexcept { return frequency_khz; }
const char* source() noexcept { return frequency_source; }
Skew skew_of(CpuId cpu) noexcept { return skews[index(cpu)]; }

void skew_prepare() noexcept { turn.store(0, std::memory_order_seq_cst); } // both sides wait for turn 1

void skew_lead(CpuId cpu, Nanoseconds budget) noexcept {
    Skew best{0, ~0ull, false};
    const clock::Deadline enough(budget);
    for (unsigned round = 0; round < kSkewRounds; ++round) {
        const auto before = time_stamp_ordered();
        turn.store(2 * round + 1, std::memory_order_release); // the follower acquires it
        const clock::Deadline deadline(milliseconds(50));
        while (turn.load(std::memory_order_acquire) != 2 * round + 2) { // acquires the answer
            if (deadline.passed()) {
                turn.store(kSkewOver, std::memory_order_release);
                skews[index(cpu)] = best; // what was measured so far stands
                return;
            }
            pause();
        }
        const auto after = time_stamp_ordered();
        const auto half = (after - before).value / 2;
        if (half < best.error_ticks)
            best = {static_cast<std::int64_t>(answer.load(std::memory_order_relaxed) - (before.value + half)), half,
                    true};
        if (round >= 8 && clock::to_nanoseconds({best.error_ticks}).value < kSkewGoodEnoughNs)
            break;
        if (enough.passed())
            break;
    }
    turn.store(kSkewOver, std::memory_order_release);
    skews[index(cpu)] = best;
}

void skew_follow(CpuId) noexcept {
    for (unsigned round = 0; round < kSkewRounds; ++round) {
        const clock::Deadline deadline(milliseconds(100));
        while (turn.load(std::memory_order_acquire) != 2 * round + 1) {
            if (turn.load(std::memory_order_relaxed) == kSkewOver || deadline.passed())
                return;
            pause();
        }
        answer.store(time_stamp_ordered().value, std::memory_order_relaxed); // published by the release below
        turn.store(2 * round + 2, std::memory_order_release);
    }
}

} // namespace spinkick::x86::tsc

namespace spinkick::clock {

namespace tsc = x86::tsc;

// Whole milliseconds and the rest apart: 64-bit products that cannot overflow, and no 128-bit division, which would
// need libgcc.
Nanoseconds to_nanoseconds(Tsc ticks) noexcept {
    const auto frequency = tsc::khz();
    return {ticks.value / frequency * 1'000'000 + ticks.value % frequency * 1'000'000 / frequency};
}

Tsc to_ticks(Nanoseconds ns) noexcept {
    const auto frequency = tsc::khz();
    return {ns.value / 1'000'000 * frequency + ns.value % 1'000'000 * frequency / 1'000'000};
}

Nanoseconds now() noexcept {
    const auto mine = to_nanoseconds(x86::time_stamp() - tsc::origin).value;
    auto latest = tsc::latest_ns.load(std::memory_order_relaxed);
    // Counters of CPUs may differ: nobody gets less than anybody was told. Relaxed: only this one value is ordered.
    while (latest < mine)
        if (tsc::latest_ns.compare_exchange_weak(latest, mine, std::memory_order_relaxed))
            return {mine};
    return {latest};
}

} // namespace spinkick::clock
