// SPDX-License-Identifier: BSD-2-Clause
//
// From records to named figures: which value belongs to which lock, where it was measured, and in which boot and
// repetition. Whatever compares, tabulates or draws figures takes them from here.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report {

enum class Figure : std::uint8_t {
    acquisitions_per_s,
    wait_p50,
    wait_p99,
    handoff_p50,
    handoff_p99,
    kick_to_run,
    jain,
    halts_per_acquisition,
    kicks_per_acquisition,
    records_per_s,
    operations_per_s,
    jobs_per_min,
};

enum class Better : std::uint8_t { higher, lower, neither };
enum class Unit : std::uint8_t { rate, nanoseconds, index, ratio };

struct FigureKind {
    Figure figure;
    std::string_view name; ///< as in options
    std::string_view text; ///< as in tables
    Better better;         ///< halts and kicks explain a change; by themselves they are neither good nor bad
    Unit unit;
    bool conditional = false; ///< there is none if nothing of the kind happened
};

inline constexpr std::array kFigureKinds{
    FigureKind{Figure::acquisitions_per_s, "acquisitions_per_s", "acquisitions/s", Better::higher, Unit::rate},
    FigureKind{Figure::wait_p50, "wait_p50", "wait p50", Better::lower, Unit::nanoseconds},
    FigureKind{Figure::wait_p99, "wait_p99", "wait p99", Better::lower, Unit::nanoseconds},
    FigureKind{Figure::handoff_p50, "handoff_p50", "handoff p50", Better::lower, Unit::nanoseconds, true},
    FigureKind{Figure::handoff_p99, "handoff_p99", "handoff p99", Better::lower, Unit::nanoseconds, true},
    FigureKind{Figure::kick_to_run, "kick_to_run", "kick to run", Better::lower, Unit::nanoseconds, true},
    FigureKind{Figure::jain, "jain", "Jain index", Better::higher, Unit::index},
    FigureKind{Figure::halts_per_acquisition, "halts", "halts/acquisition", Better::neither, Unit::ratio},
    FigureKind{Figure::kicks_per_acquisition, "kicks", "kicks/acquisition", Better::neither, Unit::ratio},
    // Instead of acquisitions_per_s, in the workloads that do something with their locks.
    FigureKind{Figure::records_per_s, "records_per_s", "records/s", Better::higher, Unit::rate},
    FigureKind{Figure::operations_per_s, "operations_per_s", "operations/s", Better::higher, Unit::rate},
    FigureKind{Figure::jobs_per_min, "jobs_per_min", "jobs/min", Better::higher, Unit::rate},
};

[[nodiscard]] constexpr const FigureKind& kind_of(Figure figure) noexcept {
    return kFigureKinds[static_cast<std::size_t>(figure)];
}
static_assert([] {
    for (std::size_t i = 0; i < kFigureKinds.size(); ++i)
        if (kFigureKinds[i].figure != static_cast<Figure>(i))
            return false;
    return true;
}());

[[nodiscard]] std::optional<Figure> figure_named(std::string_view name) noexcept;
/// "acquisitions_per_s, wait_p50, ..."
[[nodiscard]] std::string figure_names();
/// 84.1k, 1.20us, 0.987, 0.0123
[[nodiscard]] std::string human_value(double value, Unit unit);

/// On what a figure was measured. Only figures of equal places may stand side by side without a word.
struct Place {
    std::string bench;
    std::string platform;
    std::string timing;                 ///< "emulated" or "real"
    std::optional<std::uint64_t> cpus;  ///< vCPUs that contended
    std::optional<std::uint64_t> pcpus; ///< host CPUs under all guests
    std::uint64_t guests = 1;           ///< that ran at the same time

    friend auto operator<=>(const Place&, const Place&) = default;
    friend bool operator==(const Place&, const Place&) = default;

    [[nodiscard]] bool emulated() const noexcept { return timing == "emulated"; }
    /// vCPUs of all guests for each host CPU.
    [[nodiscard]] std::optional<double> overcommit() const noexcept;
};

/// "contention, 4 vCPUs on 2 host CPUs, nested-kvm"
[[nodiscard]] std::string text_of(const Place& place);

/// "pv-queued/kvm"
[[nodiscard]] std::string lock_name(const std::string& lock, const std::string& backend);
/// True if `wanted` is a lock's name ("pv-queued") or the whole ("pv-queued/kvm").
[[nodiscard]] bool names_lock(std::string_view wanted, std::string_view lock) noexcept;

struct FigureId {
    Place place;
    std::string lock; ///< with its back end
    Figure figure = Figure::acquisitions_per_s;

    friend auto operator<=>(const FigureId&, const FigureId&) = default;
    friend bool operator==(const FigureId&, const FigureId&) = default;
};

struct FigureValue {
    std::optional<std::uint32_t> boot;
    std::optional<std::uint64_t> repetition; ///< none: one value for the whole boot
    double value = 0;
};

/// What counts as one independent value.
enum class Replicate : std::uint8_t { repetition, boot };

class Figures {
  public:
    explicit Figures(const Results& results);

    /// In the order in which the image wrote them.
    [[nodiscard]] const std::vector<FigureId>& ids() const noexcept { return ids_; }
    [[nodiscard]] bool has(const FigureId& id) const { return values_.contains(id); }
    /// Empty if there are none.
    [[nodiscard]] const std::vector<FigureValue>& all(const FigureId& id) const;
    /// One number for each repetition or boot; guests that ran at the same time are one value, their mean.
    [[nodiscard]] std::vector<double> values(const FigureId& id, Replicate replicate) const;
    /// Fields of bench and histogram records that were missing or no numbers, in words.
    [[nodiscard]] const std::vector<std::string>& missing() const noexcept { return missing_; }

  private:
    void add(FigureId id, FigureValue value);

    std::vector<FigureId> ids_;
    std::map<FigureId, std::vector<FigureValue>> values_;
    std::vector<std::string> missing_;
};

/// Mean time from a kick to its target running, over one bench record; nothing if no wait was kicked.
[[nodiscard]] std::optional<double> kick_to_run_ns(const Json& bench, std::optional<std::uint64_t> tsc_khz) noexcept;

/// The TSC frequency of each run, as its context record has it.
[[nodiscard]] std::map<RunId, std::uint64_t> tsc_frequencies(const Results& results);

/// Finds the place of each bench and histogram record: a histogram has no number of CPUs of its own and belongs to the
/// last benchmark of its name in its guest.
class Places {
  public:
    explicit Places(const Results& results);
    /// To be called for each record in turn.
    [[nodiscard]] Place of(const Json& record);

  private:
    std::map<std::optional<std::uint32_t>, std::uint64_t> guests_; ///< by boot
    std::map<std::pair<RunId, std::string>, Place> last_;
};

} // namespace spinkick::report
