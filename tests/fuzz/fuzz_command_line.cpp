// SPDX-License-Identifier: BSD-2-Clause
//
// The kernel's command line; the input is the line.
#include <algorithm>
#include <memory>

#include "kernel/command_line.hpp"
#include "kernel/glob.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace spinkick::fuzz {
namespace {

/// Lists hold parts of the copy of the line: the loader's own memory is used again.
template <std::size_t N>
void require_inside(const TextList<N>& list, const CommandLine& line) {
    for (const std::string_view text : list.items())
        require(!text.empty() && text.data() >= line.line && text.data() + text.size() <= line.line + line.line_size,
                "a list points into the kept line");
}

} // namespace

void command_line(Input input) {
    const auto line = std::make_unique<CommandLine>();
    ErrorText error;
    const bool good = parse_command_line(text_of(input), *line, error);
    require(good == error.empty(), "an error has a text, and a text is an error");
    require_inside(line->tests, *line);
    require_inside(line->skip, *line);
    require_inside(line->locks, *line);
    require_inside(line->ignored, *line);
    require(line->bench_cpus >= 2 && line->bench_cpus <= kMostBenchCpus, "bench_cpus in its bounds");
    require(line->duration_ms >= 1 && line->duration_ms <= 3'600'000, "duration_ms in its bounds");
    require(line->watchdog_ms >= 10 && line->watchdog_ms <= 3'600'000, "watchdog_ms in its bounds");
    require(line->repeat <= 1'000'000 && line->soak_s <= 7 * 24 * 3600, "repeat and soak in their bounds");
    for (const std::string_view pattern : line->tests.items()) {
        // A pattern of thousands of stars must not take exponential time.
        const bool matches = glob_match(pattern, "lock.mutual_exclusion/unfair-pv-queued/kvm");
        require(!matches || pattern.size() <= 42 || pattern.find('*') != std::string_view::npos, "a match has room");
    }
}

} // namespace spinkick::fuzz
