// SPDX-License-Identifier: BSD-2-Clause
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/compare.hpp"
#include "tools/inputs.hpp"

namespace spinkick::report {
namespace {

struct CompareArguments {
    std::vector<std::string> sides; ///< BASE and NEW
    std::vector<std::string> base, next;
    std::string threshold = "5%";
    std::string unit;
    std::vector<std::string> locks, figures;
};

/// "5%", "5" or "2.5%" as a part of one.
std::optional<double> percentage(std::string text) {
    if (text.ends_with('%'))
        text.pop_back();
    try {
        std::size_t used = 0;
        const double value = std::stod(text, &used);
        if (used == text.size() && std::isfinite(value) && value >= 0)
            return value / 100;
    } catch (const std::exception&) {
    }
    return std::nullopt;
}

int run(const CompareArguments& arguments) {
    CompareOptions options;
    if (const auto threshold = percentage(arguments.threshold)) {
        options.threshold = *threshold;
    } else {
        complain(fmt::format("--threshold {}: a percentage such as 5% is wanted", arguments.threshold));
        return raw(ExitCode::error);
    }
    for (const std::string& name : arguments.figures) {
        const auto figure = figure_named(name);
        if (!figure) {
            complain(fmt::format("--figure {}: one of {} is wanted", name, figure_names()));
            return raw(ExitCode::error);
        }
        options.figures.push_back(*figure);
    }
    options.locks = arguments.locks;
    if (!arguments.unit.empty())
        options.replicate = arguments.unit == "boot" ? Replicate::boot : Replicate::repetition;

    std::vector<std::string> base = arguments.base;
    std::vector<std::string> next = arguments.next;
    if (arguments.sides.size() == 2) {
        base.push_back(arguments.sides[0]);
        next.push_back(arguments.sides[1]);
    }
    if (arguments.sides.size() == 1 || base.empty() || next.empty()) {
        complain("compare: BASE and NEW are wanted, or --base and --new");
        return raw(ExitCode::error);
    }
    Loaded base_loaded = load_all(paths_in(base));
    Loaded next_loaded = load_all(paths_in(next));
    if (base_loaded.parts.empty() || next_loaded.parts.empty()) {
        if (base_loaded.complete && next_loaded.complete)
            complain("compare: BASE or NEW names no file");
        return raw(ExitCode::error);
    }
    const Results base_results = merge(std::move(base_loaded.parts));
    const Results next_results = merge(std::move(next_loaded.parts));
    const Comparison comparison = compare(base_results, next_results, options);
    fmt::print("{}", comparison_text(comparison, base_results, next_results, options));
    if (comparison.exit_code() == ExitCode::error)
        complain(comparison.complaint());
    if (comparison.exit_code() == ExitCode::pass && !(base_loaded.complete && next_loaded.complete))
        return raw(ExitCode::error);
    return raw(comparison.exit_code());
}

} // namespace

Command compare_command(CLI::App& parent) {
    auto arguments = std::make_shared<CompareArguments>();
    auto* app = parent.add_subcommand(
        "compare", "Say whether NEW is worse than BASE: 0 no regression, 1 a regression, 2 bad or too little input");
    app->add_option("sides", arguments->sides,
                    "BASE and NEW: run directories or results.json files, several with commas between them")
        ->expected(0, 2)
        ->option_text("BASE NEW");
    app->add_option("--base", arguments->base, "one more of BASE; may be repeated");
    app->add_option("--new", arguments->next, "one more of NEW; may be repeated");
    app->add_option("--threshold", arguments->threshold, "smallest change of a mean that matters (default 5%)");
    app->add_option("--lock", arguments->locks, "only this lock, such as pv-queued or pv-queued/kvm; may be repeated");
    app->add_option("--figure", arguments->figures, "only this figure: " + figure_names() + "; may be repeated");
    app->add_option("--unit", arguments->unit,
                    "what counts as one value: repetition or boot (default: boots, where there are enough of them)")
        ->check(CLI::IsMember({"repetition", "boot"}));
    return {app, [arguments] { return run(*arguments); }};
}

} // namespace spinkick::report
