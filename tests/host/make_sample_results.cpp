// SPDX-License-Identifier: BSD-2-Clause
//
// make_sample_results DIR KEY=VALUE...: the results of a benchmark that never ran, as files, for tests that call
// spinkick-report as a person would.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "tests/host/sample_results.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

void set(sample::Bench& bench, std::string_view key, const std::string& value) {
    const auto number = [&value] { return static_cast<std::uint32_t>(std::stoul(value)); };
    if (key == "platform")
        bench.platform = value;
    else if (key == "timing")
        bench.timing = value;
    else if (key == "boots")
        bench.boots = number();
    else if (key == "guests")
        bench.guests = number();
    else if (key == "repetitions")
        bench.repetitions = number();
    else if (key == "cpus")
        bench.cpus = number();
    else if (key == "seed")
        bench.seed = number();
    else if (key == "busy")
        bench.busy = std::stod(value);
    else if (key == "buckets")
        bench.buckets = number() != 0;
    else if (key == "host_counters")
        bench.host_counters = number() != 0;
    else // a lock's speed: queued/native=0.5
        bench.speed[std::string{key}] = std::stod(value);
}

int run(int argc, char** argv) {
    sample::Bench bench;
    for (int i = 2; i < argc; ++i) {
        const std::string_view word = argv[i];
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos)
            throw InputError("KEY=VALUE is wanted: " + std::string{word});
        set(bench, word.substr(0, equals), std::string{word.substr(equals + 1)});
    }
    if (argc < 2)
        throw InputError("usage: make_sample_results DIR KEY=VALUE...");
    Results results = sample::bench_results(bench);
    // Something for every part of a report.
    results.tests.push_back({results.runs.front().id, "lock.mutual_exclusion/broken/native", Status::skip,
                             "needs <two> & \"more\"", std::nullopt});
    write_files(results, argv[1]);
    return EXIT_SUCCESS;
}

} // namespace
} // namespace spinkick::report

int main(int argc, char** argv) {
    try {
        return spinkick::report::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "make_sample_results: %s\n", error.what());
        return EXIT_FAILURE;
    }
}
