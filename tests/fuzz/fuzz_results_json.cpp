// SPDX-License-Identifier: BSD-2-Clause
//
// Whatever reads a results.json, over one that anybody may have written. The input is the file.
#include <vector>

#include "tests/fuzz/fuzz.hpp"
#include "tools/compare.hpp"
#include "tools/junit.hpp"
#include "tools/overcommit_table.hpp"
#include "tools/page.hpp"
#include "tools/page_data.hpp"
#include "tools/results.hpp"
#include "tools/summary.hpp"
#include "tools/tap.hpp"
#include "tools/text.hpp"
#include "tools/trace.hpp"

namespace spinkick::fuzz {

using namespace report;

void results_json(Input input) {
    Results results;
    try {
        results = from_json(text_of(input), "input");
    } catch (const InputError& error) {
        const std::string_view what = error.what();
        require(what.starts_with("input: ") && what.find('\n') == std::string_view::npos,
                "one line, with the file's name");
        return;
    }
    (void)to_tap(results);
    (void)to_junit(results);
    (void)to_json(results);
    (void)trace_of(results).dump();
    (void)summary(results, Colour::on);
    (void)json_for_script(page_data(results));

    const Comparison comparison = compare(results, results, {});
    require(comparison.count(Outcome::regression) == 0, "no results are worse than themselves");
    (void)comparison_text(comparison, results, results, {});
    for (const FigureKind& kind : kFigureKinds)
        (void)overcommit_text(overcommit_of_results(results, results, kind.figure, {}));
    (void)overcommit_text(overcommit_of_locks(results, Figure::acquisitions_per_s, "queued", "pv-queued"));

    const std::size_t tests = results.tests.size();
    const Results twice = merge({results, results});
    require(twice.tests.size() == 2 * tests, "a merge loses no test");
    require(unique_names(twice).size() == 2 * tests, "nor a name");
    (void)summary(twice, Colour::off);
}

} // namespace spinkick::fuzz
