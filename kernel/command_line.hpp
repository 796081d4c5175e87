// SPDX-License-Identifier: BSD-2-Clause
//
// The kernel command line: what to run and how. The keys are listed once, in command_line.cpp, and described in
// docs/report-format.md. A word that is no key is an error that names it, except for the words that loaders add by
// themselves: those are collected, to be echoed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/sync/tuning.hpp"
#include "kernel/text.hpp"

namespace spinkick {

/// How a kick travels; `automatic` proves all that the back end has and begins with the first that works.
enum class KickChoice : std::uint8_t { automatic, hypercall, remrd, ipi, evtchn };

/// How Xen tells of events: bits in a shared page, or queues of ports (Xen 4.4 and later).
enum class EventChannels : std::uint8_t { two_level, fifo };

/// Bound of the tables of a benchmark.
inline constexpr std::uint32_t kMostBenchCpus = 64;

/// Whether paravirtual back ends are used: as their probe says, never, or in spite of what the probe says.
enum class ParavirtChoice : std::uint8_t { automatic, off, force };

/// Which loads bench.jobs runs.
enum class JobLoad : std::uint8_t { all, light, moderate, heavy };

/// A bounded list of texts that live elsewhere.
template <std::size_t N>
class TextList {
  public:
    [[nodiscard]] constexpr bool add(std::string_view text) noexcept {
        if (size_ == N)
            return false;
        items_[size_++] = text;
        return true;
    }
    constexpr void clear() noexcept { size_ = 0; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] constexpr std::span<const std::string_view> items() const noexcept { return {items_.data(), size_}; }

  private:
    std::array<std::string_view, N> items_{};
    std::size_t size_ = 0;
};

using GlobList = TextList<32>;

/// Not copyable: the lists point into `line`.
struct CommandLine {
    static constexpr std::size_t kMostBytes = 4095;

    GlobList tests; ///< empty: all
    GlobList skip;
    GlobList locks;           ///< empty: all
    bool list = false;        ///< list the tests, run none
    bool monitor = false;     ///< run what is asked for over the console, until `quit`
    std::uint64_t seed = 1;   ///< fixed, so that two runs make the same choices
    std::uint32_t repeat = 0; ///< 0: not given; tests once, benches their own number of repetitions
    std::uint32_t duration_ms = 100;
    std::uint32_t bench_cpus = kMostBenchCpus; ///< CPUs that contend in a benchmark, at most
    std::uint32_t pairs = 1000;                ///< of lock and unlock, by each task of bench.micro
    std::uint32_t jobs = 200;                  ///< of bench.jobs, for all CPUs together
    JobLoad load = JobLoad::all;
    std::uint32_t limit_ms = 2000; ///< a measurement of a fixed amount of work ends there at the latest
    std::uint64_t spin_threshold = 1u << 15;
    std::uint64_t qspin_threshold = 1u << 14;
    std::uint64_t byte_timeout = 1u << 10;
    sync::RelaxHint relax = sync::RelaxHint::pause;
    sync::YieldMethod directed_yield = sync::YieldMethod::off;
    sync::WaitEarly wait_early = sync::WaitEarly::state;
    sync::Stealing stealing = sync::Stealing::on;
    bool kick_holder = true;
    KickChoice kick = KickChoice::automatic;
    ParavirtChoice paravirt = ParavirtChoice::automatic;
    EventChannels evtchn = EventChannels::two_level;
    std::uint32_t watchdog_ms = 10'000;
    std::uint32_t linger_ms = 0; ///< after the verdict, for whoever reads the host's counters
    bool sync = false;           ///< measurements begin and end with a sync point (kernel/test/sync_point.hpp)
    bool nmis = true;            ///< NMIs among the noise of the soak
    std::uint64_t soak_s = 0;    ///< 0: not given; else the soak runs for so long, alone unless tests= names others
    /// Negative control for the bring-up: start signals to the last CPU that are lost, from the first on.
    std::uint32_t drop_starts = 0;
    bool compact = false;

    TextList<16> ignored;           ///< words of the loader
    std::uint32_t ignored_more = 0; ///< how many did not fit

    char line[kMostBytes + 1] = {}; ///< the line itself
    std::size_t line_size = 0;

    constexpr CommandLine() noexcept = default;
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    [[nodiscard]] constexpr std::string_view view() const noexcept { return {line, line_size}; }
};

/// Reads `line` into `out`, which is fresh. False: `error` says what is wrong with which word, and what to do.
[[nodiscard]] bool parse_command_line(std::string_view line, CommandLine& out, ErrorText& error) noexcept;

/// Gives the locks the switches of `line`. They may be in use.
void apply_tuning(const CommandLine& line) noexcept;

[[nodiscard]] std::string_view name(KickChoice choice) noexcept;
[[nodiscard]] std::string_view name(ParavirtChoice choice) noexcept;
[[nodiscard]] std::string_view name(EventChannels form) noexcept;
[[nodiscard]] std::string_view name(sync::RelaxHint hint) noexcept;
[[nodiscard]] std::string_view name(sync::YieldMethod method) noexcept;

} // namespace spinkick
