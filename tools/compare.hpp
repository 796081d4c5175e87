// SPDX-License-Identifier: BSD-2-Clause
//
// Is NEW worse than BASE? Each figure is paired with the one of the same lock at the same place. A difference counts if
// the rank test says so at 1 % for all compared figures together (Holm), and if the means differ by the threshold.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/figures.hpp"
#include "tools/judge.hpp"
#include "tools/results.hpp"
#include "tools/statistics.hpp"

namespace spinkick::report {

/// Chance of one false alarm among all compared figures.
inline constexpr double kFalseAlarm = 0.01;

struct CompareOptions {
    double threshold = 0.05;            ///< smallest relative change of the mean that matters
    std::optional<Replicate> replicate; ///< boots where there are enough of them, unless it is said here
    std::vector<std::string> locks;     ///< only these, as names_lock() reads them; empty: all
    std::vector<Figure> figures;        ///< only these; empty: all
};

enum class Outcome : std::uint8_t {
    same,        ///< no difference is shown
    small,       ///< a difference is shown that is below the threshold
    regression,  ///< worse
    improvement, ///< better
    changed,     ///< different, and neither better nor worse
    few,         ///< too few values for any difference to be shown
};

struct ComparedFigure {
    FigureId id;
    Better better = Better::neither;
    std::vector<double> base, next;
    std::optional<double> change;     ///< of the mean, relative to BASE's
    std::optional<Interval> interval; ///< of `change`, 95 %
    std::optional<double> p;          ///< Holm's; none for one value a side, or values that are all equal
    Outcome outcome = Outcome::few;
};

struct Comparison {
    std::vector<ComparedFigure> figures;
    std::vector<std::string> problems; ///< why it is not the comparison that was asked for
    std::vector<std::string> notes;
    std::vector<std::string> noise; ///< why differences between repetitions may be the host's
    bool noise_counts = false;      ///< and nobody has asked to count them nevertheless
    Replicate replicate = Replicate::repetition;
    std::size_t base_boots = 0, next_boots = 0;
    std::size_t family = 0;       ///< figures that were tested
    std::size_t needed = 0;       ///< values a side from which on a difference can be shown
    std::size_t boots_needed = 0; ///< boots a side from which on that is so with one value for each boot

    [[nodiscard]] std::size_t count(Outcome outcome) const noexcept;
    /// At least one figure has so many values that a difference could be shown.
    [[nodiscard]] bool can_tell() const noexcept;
    /// fail: a regression. error: none, but not everything was compared, or nothing could have been shown; or the host
    /// was too noisy for what is shown to mean anything.
    [[nodiscard]] ExitCode exit_code() const noexcept;
    /// The one line that goes with ExitCode::error.
    [[nodiscard]] std::string complaint() const;
};

[[nodiscard]] Comparison compare(const Results& base, const Results& next, const CompareOptions& options);

/// What was compared with what, the table, and the verdict at the end.
[[nodiscard]] std::string comparison_text(const Comparison& comparison, const Results& base, const Results& next,
                                          const CompareOptions& options);

} // namespace spinkick::report
