// SPDX-License-Identifier: BSD-2-Clause
#include "tools/compare.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/host_noise.hpp"
#include "tools/sides.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"

namespace spinkick::report {
namespace {

/// Histograms of the image cut an octave into 32 buckets.
constexpr double kBucketError = 1.0 / 32;

bool is_floor(std::string_view lock) { return names_lock("null", lock); }

bool is_selected(const FigureId& id, const CompareOptions& options) {
    const auto& locks = options.locks;
    const auto& figures = options.figures;
    return (figures.empty() || std::find(figures.begin(), figures.end(), id.figure) != figures.end()) &&
           (locks.empty() ||
            std::any_of(locks.begin(), locks.end(), [&id](const auto& lock) { return names_lock(lock, id.lock); }));
}

// --- what cannot be compared -----------------------------------------------------------------------------------------

using Machine = std::pair<std::string, std::string>; // platform, timing

std::set<Machine> machines_of(const Figures& figures) {
    std::set<Machine> machines;
    for (const FigureId& id : figures.ids())
        machines.emplace(id.place.platform, id.place.timing);
    return machines;
}

std::string text_of(const std::set<Machine>& machines) {
    std::string text;
    for (const auto& [platform, timing] : machines)
        text += fmt::format("{}{} ({} time)", text.empty() ? "" : " and ", printable(platform), printable(timing));
    return text.empty() ? "nothing" : text;
}

std::set<Place> places_of(const Figures& figures) {
    std::set<Place> places;
    for (const FigureId& id : figures.ids())
        places.insert(id.place);
    return places;
}

void add_mixtures(std::vector<std::string>& problems, const Figures& base, const Figures& next) {
    const auto base_machines = machines_of(base);
    const auto next_machines = machines_of(next);
    if (base_machines.empty() || next_machines.empty())
        problems.push_back(fmt::format("{} no figures: was tests= without bench.*?",
                                       base_machines.empty() && next_machines.empty() ? "BASE and NEW have"
                                       : base_machines.empty()                        ? "BASE has"
                                                                                      : "NEW has"));
    else if (base_machines != next_machines)
        problems.push_back(
            fmt::format("BASE ran on {}, NEW on {}: compare results of one platform and one kind of time",
                        text_of(base_machines), text_of(next_machines)));
    else if (base_machines.size() > 1)
        problems.push_back(fmt::format("mixed platforms or times: BASE and NEW ran on {}; give one of them at a time",
                                       text_of(base_machines)));
}

/// Figures of one side that the other one has not, a whole place or a whole lock as one line.
void add_missing(Comparison& comparison, const Figures& here, const Figures& there, const char* other,
                 const CompareOptions& options) {
    const auto places = places_of(there);
    std::set<std::pair<Place, std::string>> locks;
    for (const FigureId& id : there.ids())
        locks.emplace(id.place, id.lock);
    std::set<std::string> said;
    for (const FigureId& id : here.ids()) {
        if (there.has(id) || !is_selected(id, options))
            continue;
        const std::string where = spinkick::report::text_of(id.place);
        std::string line;
        if (!places.contains(id.place))
            line = fmt::format("{} has no figures of {}", other, where);
        else if (!locks.contains({id.place, id.lock}))
            line = fmt::format("{} has no figures of {} ({})", other, printable(id.lock), where);
        else
            line = fmt::format("{} has no {} of {} ({})", other, kind_of(id.figure).text, printable(id.lock), where);
        if (!said.insert(line).second)
            continue;
        const bool may_lack = kind_of(id.figure).conditional && locks.contains({id.place, id.lock});
        (may_lack ? comparison.notes : comparison.problems).push_back(std::move(line));
    }
}

// --- judging ---------------------------------------------------------------------------------------------------------

std::vector<ComparedFigure> paired(const Figures& base, const Figures& next, Replicate replicate,
                                   const CompareOptions& options) {
    std::vector<ComparedFigure> figures;
    for (const FigureId& id : base.ids()) {
        if (!next.has(id) || !is_selected(id, options))
            continue;
        ComparedFigure figure;
        figure.id = id;
        // What no lock causes is no lock's regression: the floor is there to show that the machine has changed.
        figure.better = is_floor(id.lock) ? Better::neither : kind_of(id.figure).better;
        figure.base = base.values(id, replicate);
        figure.next = next.values(id, replicate);
        figures.push_back(std::move(figure));
    }
    return figures;
}

/// All values of both sides are the same number, such as no halts of a lock that never sleeps.
bool is_constant(const ComparedFigure& figure) {
    const auto differs = [&figure](double value) { return value < figure.base[0] || value > figure.base[0]; };
    return std::none_of(figure.base.begin(), figure.base.end(), differs) &&
           std::none_of(figure.next.begin(), figure.next.end(), differs);
}

/// One value a side says nothing about the next one. Values that are all equal are no question to ask: the test's p is
/// 1 whatever the others are, so they do not count in the correction either.
bool is_testable(const ComparedFigure& figure) {
    return figure.base.size() > 1 && figure.next.size() > 1 && !is_constant(figure);
}

std::size_t family_of(const std::vector<ComparedFigure>& figures) {
    return static_cast<std::size_t>(std::count_if(figures.begin(), figures.end(), is_testable));
}

Outcome outcome_of(const ComparedFigure& figure, const RankSum& test, double p, double threshold) {
    if (p > kFalseAlarm)
        return Outcome::same;
    const double base = mean_of(figure.base);
    const double difference = mean_of(figure.next) - base;
    if (std::abs(difference) < threshold * std::abs(base))
        return Outcome::small;
    // Where means and ranks point in opposite directions, a few huge values moved, or all of the others did.
    if (figure.better == Better::neither || (difference > 0) != (test.direction > 0))
        return Outcome::changed;
    return (figure.better == Better::higher) == (difference > 0) ? Outcome::improvement : Outcome::regression;
}

void judge_figures(Comparison& comparison, double threshold) {
    std::vector<RankSum> tests;
    std::vector<double> p;
    std::vector<ComparedFigure*> tested;
    for (ComparedFigure& figure : comparison.figures) {
        const double base = mean_of(figure.base);
        if (base > 0)
            figure.change = mean_of(figure.next) / base - 1;
        if (!is_testable(figure)) {
            if (figure.base.size() > 1 && figure.next.size() > 1)
                figure.outcome = Outcome::same;
            continue;
        }
        if (const auto ratio = ratio_interval(figure.base, figure.next))
            figure.interval = Interval{ratio->low - 1, ratio->high - 1};
        tests.push_back(rank_sum_test(figure.base, figure.next));
        p.push_back(tests.back().p);
        tested.push_back(&figure);
    }
    const std::vector<double> corrected = holm(p);
    for (std::size_t i = 0; i < tested.size(); ++i) {
        ComparedFigure& figure = *tested[i];
        figure.p = corrected[i];
        const bool enough =
            smallest_p(figure.base.size(), figure.next.size()) * static_cast<double>(comparison.family) <= kFalseAlarm;
        // A percentile is known to a bucket's width: a change of less may be none at all.
        const bool is_percentile = kind_of(figure.id.figure).unit == Unit::nanoseconds;
        figure.outcome =
            outcome_of(figure, tests[i], corrected[i], is_percentile ? std::max(threshold, kBucketError) : threshold);
        if (figure.outcome == Outcome::same && !enough)
            figure.outcome = Outcome::few;
    }
}

/// Whatever disturbs the host for a part of a boot, or between two boots, shows in locks that have nothing to do with
/// each other, and in the floor, which is no lock.
void add_noise(Comparison& comparison, const Figures& base, const Figures& next, double threshold) {
    for (const auto& [side, figures] : {std::pair{"BASE", &base}, std::pair{"NEW", &next}})
        for (const HostNoise& noise : host_noise_in(*figures))
            comparison.noise.push_back(fmt::format("{}: {}", side, text_of(noise)));
    for (const ComparedFigure& figure : comparison.figures)
        if (is_floor(figure.id.lock) && figure.id.figure == Figure::acquisitions_per_s && figure.change &&
            std::abs(*figure.change) >= threshold && rank_sum_test(figure.base, figure.next).p <= kFalseAlarm)
            comparison.noise.push_back(
                fmt::format("{}, which locks nothing, changed by {:+.1f}%: the machine is not the "
                            "same",
                            printable(figure.id.lock), *figure.change * 100));
}

// --- text ------------------------------------------------------------------------------------------------------------

std::string percent(double part) {
    return fmt::format("{:+.1f}%", std::round(part * 1000) / 10 + 0.0); // no "-0.0%"
}

std::string deviation_text(const std::vector<double>& values) {
    const auto deviation = deviation_of(values);
    const double mean = mean_of(values);
    return deviation && mean > 0 ? fmt::format("{:.1f}%", *deviation / mean * 100) : "-";
}

std::string_view word_of(Outcome outcome) {
    switch (outcome) {
    case Outcome::same:
        return "";
    case Outcome::small:
        return "below threshold";
    case Outcome::regression:
        return "REGRESSION";
    case Outcome::improvement:
        return "improvement";
    case Outcome::changed:
        return "changed";
    case Outcome::few:
        break;
    }
    return "too few";
}

std::string mean_text(const ComparedFigure& figure, const std::vector<double>& values) {
    return human_value(mean_of(values), kind_of(figure.id.figure).unit);
}

std::string p_text(const ComparedFigure& figure) {
    if (!figure.p)
        return "-";
    return *figure.p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", *figure.p);
}

std::string interval_text(const ComparedFigure& figure) {
    return figure.interval ? fmt::format("{} to {}", percent(figure.interval->low), percent(figure.interval->high))
                           : "-";
}

std::string table_text(const Comparison& comparison) {
    std::string out;
    std::vector<Place> places;
    for (const ComparedFigure& figure : comparison.figures)
        if (std::find(places.begin(), places.end(), figure.id.place) == places.end())
            places.push_back(figure.id.place);
    for (const Place& place : places) {
        std::vector<std::string> locks;
        for (const ComparedFigure& figure : comparison.figures)
            if (figure.id.place == place && std::find(locks.begin(), locks.end(), figure.id.lock) == locks.end())
                locks.push_back(figure.id.lock);
        TextTable table({"lock/back end", "figure", "BASE", "stdev", "NEW", "stdev", "change", "95% interval", "p", ""},
                        2);
        for (const std::string& lock : locks) {
            std::string name = printable(lock);
            for (const FigureKind& kind : kFigureKinds)
                for (const ComparedFigure& figure : comparison.figures) {
                    if (figure.id != FigureId{place, lock, kind.figure})
                        continue;
                    // A lock that never sleeps has no line to say so.
                    if (kind.unit == Unit::ratio && is_constant(figure) && figure.base[0] <= 0)
                        continue;
                    table.add({std::exchange(name, ""), std::string{kind.text}, mean_text(figure, figure.base),
                               deviation_text(figure.base), mean_text(figure, figure.next), deviation_text(figure.next),
                               figure.change ? percent(*figure.change) : "-", interval_text(figure), p_text(figure),
                               std::string{word_of(figure.outcome)}});
                }
        }
        out += text_of(place) + std::string{emulation_text(place.emulated())} + "\n" + table.text() + "\n";
    }
    return out;
}

std::string list_text(const Comparison& comparison, Outcome outcome, std::string_view title) {
    std::string out;
    for (const ComparedFigure& figure : comparison.figures)
        if (figure.outcome == outcome)
            out += fmt::format("  {} {}: {} -> {}{}{}\n", printable(figure.id.lock), kind_of(figure.id.figure).text,
                               mean_text(figure, figure.base), mean_text(figure, figure.next),
                               figure.change ? fmt::format(" ({})", percent(*figure.change)) : "",
                               is_floor(figure.id.lock) ? "; the machine, not a lock: null locks nothing" : "");
    return out.empty() ? "" : fmt::format("{}\n{}", title, out);
}

std::string values_text(const Comparison& comparison) {
    std::size_t base = 0;
    std::size_t next = 0;
    for (const ComparedFigure& figure : comparison.figures) {
        base = std::max(base, figure.base.size());
        next = std::max(next, figure.next.size());
    }
    if (comparison.replicate == Replicate::boot)
        return fmt::format("values      means of boots: {} against {}\n", base, next);
    return fmt::format(
        "values      repetitions: {} against {}, in {} and {} boot{}. What changes from boot to boot looks "
        "like a change here;\n            with {} boots a side (run-qemu.sh --repeat {}) each boot "
        "counts as one value instead.\n",
        base, next, comparison.base_boots, comparison.next_boots, comparison.next_boots == 1 ? "" : "s",
        comparison.needed, comparison.needed);
}

std::string legend_text(const CompareOptions& options) {
    return fmt::format(
        "  BASE, NEW: means; stdev in % of the mean. change: of the mean, with its 95% interval (Welch). p: chance of "
        "such\n"
        "  a difference of ranks if nothing changed (Wilcoxon), corrected for all tested figures (Holm). A difference\n"
        "  counts if p is at most {:.0f}% and the change at least {:.3g}%. Halts and kicks are neither good nor bad.\n"
        "  too few: not even values that do not overlap at all would reach that p.\n",
        kFalseAlarm * 100, options.threshold * 100);
}

std::string verdict_text(const Comparison& comparison, const CompareOptions& options) {
    const std::size_t few = comparison.count(Outcome::few);
    const std::string compared =
        fmt::format("{} figures compared, {} tested", comparison.figures.size(), comparison.family);
    std::string out;
    if (few != 0)
        out += fmt::format("note        {} figures have too few values: {} a side are needed for {:.0f}% in {} tests, "
                           "{} for one figure alone\n            (--lock, --figure). More repetitions: run-qemu.sh "
                           "--append repeat={}. Wait and handoff have one value\n            a boot: --repeat {}.\n",
                           few, comparison.needed, kFalseAlarm * 100, std::max<std::size_t>(comparison.family, 1),
                           values_needed(kFalseAlarm, 1), comparison.needed, comparison.boots_needed);
    for (const std::string& text : comparison.notes)
        out += "note        " + text + "\n";
    for (const std::string& text : comparison.noise)
        out += "noise       " + text + "\n";
    for (const std::string& problem : comparison.problems)
        out += "problem     " + problem + "\n";
    const std::size_t regressions = comparison.count(Outcome::regression);
    const std::size_t improvements = comparison.count(Outcome::improvement);
    if (comparison.noise_counts && regressions + improvements != 0)
        out += fmt::format(
            "NO VERDICT: what got worse ({}) or better ({}) may be the host's doing. Measure again on a quiet "
            "host, or {} boots a side\n            (run-qemu.sh --repeat {}); --unit repetition counts it "
            "nevertheless.\n",
            regressions, improvements, comparison.boots_needed, comparison.boots_needed);
    else if (regressions != 0)
        out += fmt::format("REGRESSION: {} of {}\n", regressions, compared);
    else if (!comparison.can_tell())
        out += fmt::format("NO VERDICT: {}, none with enough values to show a difference\n", compared);
    else
        out += fmt::format("NO REGRESSION of {:.3g}% or more is shown: {}{}{}\n", options.threshold * 100, compared,
                           few == 0 ? "" : fmt::format(", {} with too few values", few),
                           comparison.problems.empty() ? "" : "; not all could be compared");
    return out;
}

} // namespace

std::size_t Comparison::count(Outcome outcome) const noexcept {
    return static_cast<std::size_t>(std::count_if(
        figures.begin(), figures.end(), [outcome](const ComparedFigure& figure) { return figure.outcome == outcome; }));
}

bool Comparison::can_tell() const noexcept {
    return std::any_of(figures.begin(), figures.end(),
                       [](const ComparedFigure& figure) { return figure.p && figure.outcome != Outcome::few; });
}

ExitCode Comparison::exit_code() const noexcept {
    if (noise_counts && count(Outcome::regression) + count(Outcome::improvement) != 0)
        return ExitCode::error;
    if (count(Outcome::regression) != 0)
        return ExitCode::fail;
    return problems.empty() && can_tell() ? ExitCode::pass : ExitCode::error;
}

std::string Comparison::complaint() const {
    if (problems.empty() && noise_counts)
        return "compare: no verdict: the host was noisy: " + noise.front();
    if (problems.empty())
        return fmt::format("compare: too few values to show any difference: {} a side are needed for {} figures",
                           needed, std::max<std::size_t>(family, 1));
    return problems.size() == 1 ? "compare: " + problems.front()
                                : fmt::format("compare: {}; and {} more", problems.front(), problems.size() - 1);
}

Comparison compare(const Results& base_results, const Results& next_results, const CompareOptions& options) {
    const Figures base(base_results);
    const Figures next(next_results);
    Comparison comparison;
    add_mixtures(comparison.problems, base, next);
    add_missing(comparison, base, next, "NEW", options);
    add_missing(comparison, next, base, "BASE", options);
    for (const auto& [side, figures] : {std::pair{"BASE", &base}, std::pair{"NEW", &next}})
        for (const std::string& missing : figures->missing())
            comparison.problems.push_back(fmt::format("{}: {}", side, missing));
    comparison.base_boots = boots_in(base_results);
    comparison.next_boots = boots_in(next_results);

    // Boots differ by more than their repetitions do (where memory lies, what the host did), so a boot is the honest
    // unit; but only from some number of boots on can a test of boots say anything.
    comparison.figures = paired(base, next, Replicate::boot, options);
    comparison.family = family_of(comparison.figures);
    const auto questions =
        std::count_if(comparison.figures.begin(), comparison.figures.end(), std::not_fn(is_constant));
    comparison.boots_needed = values_needed(kFalseAlarm, static_cast<std::size_t>(questions));
    const bool enough_boots = std::min(comparison.base_boots, comparison.next_boots) >= comparison.boots_needed;
    comparison.replicate = options.replicate.value_or(enough_boots ? Replicate::boot : Replicate::repetition);
    if (comparison.replicate == Replicate::repetition) {
        comparison.figures = paired(base, next, Replicate::repetition, options);
        comparison.family = family_of(comparison.figures);
    }
    comparison.needed = values_needed(kFalseAlarm, comparison.family);
    if (comparison.figures.empty() && comparison.problems.empty())
        comparison.problems.push_back("no figure is of a lock and of a kind that --lock and --figure select");
    judge_figures(comparison, options.threshold);
    if (comparison.replicate == Replicate::repetition) {
        add_noise(comparison, base, next, options.threshold);
        comparison.noise_counts = !options.replicate && !comparison.noise.empty();
    }
    return comparison;
}

std::string comparison_text(const Comparison& comparison, const Results& base, const Results& next,
                            const CompareOptions& options) {
    std::string out = side_text("BASE", base) + side_text("NEW", next) + differences_text(base, next);
    if (!comparison.figures.empty())
        out += values_text(comparison) + "\n" + table_text(comparison) + legend_text(options) + "\n";
    out += list_text(comparison, Outcome::regression, "Worse in NEW:");
    out += list_text(comparison, Outcome::improvement, "Better in NEW:");
    out += list_text(comparison, Outcome::changed, "Different, neither better nor worse:");
    return out + verdict_text(comparison, options);
}

} // namespace spinkick::report
