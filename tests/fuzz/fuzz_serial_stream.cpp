// SPDX-License-Identifier: BSD-2-Clause
//
// From a serial log to the files of a run. Input: two bytes of how the guest ended, and the log.
#include <algorithm>
#include <filesystem>
#include <vector>

#include "tests/fuzz/fuzz.hpp"
#include "tools/collect.hpp"
#include "tools/follow.hpp"
#include "tools/judge.hpp"
#include "tools/junit.hpp"
#include "tools/serial_stream.hpp"
#include "tools/summary.hpp"
#include "tools/tap.hpp"
#include "tools/text.hpp"
#include "tools/trace.hpp"

namespace spinkick::fuzz {
namespace {

using namespace report;

Stream parse(std::string_view log, std::size_t piece) {
    StreamParser parser;
    for (std::size_t at = 0; at < log.size(); at += piece)
        parser.feed(log.substr(at, piece));
    parser.end();
    return parser.stream();
}

/// What decides the verdict must not depend on how the bytes arrive.
void require_equal(const Stream& a, const Stream& b) {
    require(a.plan == b.plan && a.verdict == b.verdict && a.bytes == b.bytes && a.nul_bytes == b.nul_bytes &&
                a.damaged_verdicts == b.damaged_verdicts && a.damaged_records == b.damaged_records &&
                a.records.size() == b.records.size() && a.tests.size() == b.tests.size() && a.panic == b.panic &&
                a.restarted == b.restarted && a.running == b.running && a.conflicts == b.conflicts,
            "a log read in one piece and byte by byte is the same log");
}

bool is_one_printable_line(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

} // namespace

void serial_stream(Input input) {
    RunFacts facts;
    facts.platform = "tcg";
    facts.timing = "emulated";
    const unsigned how = take_byte(input);
    const unsigned code = take_byte(input);
    facts.ending.timed_out = (how & 1) != 0;
    if ((how & 2) != 0)
        facts.ending.qemu_exit = static_cast<int>(code);
    if ((how & 4) != 0)
        facts.ending.xen_shutdown = static_cast<int>(code);
    if ((how & 8) != 0)
        facts.host_counters = "directed_yield_attempted=580";
    if ((how & 16) != 0)
        facts.id = {1, 2};

    const std::string_view log = text_of(input);
    const Stream stream = parse(log, log.size() + 1);
    require_equal(stream, parse(log, 1));
    (void)progress_line(stream, std::chrono::milliseconds{1500}, 60);
    for (std::size_t i = 0; i < stream.completed.size(); ++i)
        (void)completed_line(stream, stream.completed[i], i + 1);

    const Results results = results_of(stream, facts);
    require(is_one_printable_line(results.reason()), "a reason is one line");
    if (results.word() == Word::PASS) {
        // The verdict line in full, in the log: nothing else may pass.
        require(stream.verdict.has_value() && stream.verdict->word == Word::PASS && stream.verdict->counts.fail == 0,
                "a pass has a verdict line");
        require(log.find(kVerdictStart) != std::string_view::npos, "that stands in the log");
        require(!facts.ending.timed_out &&
                    (!facts.ending.qemu_exit || *facts.ending.qemu_exit == 33 || *facts.ending.qemu_exit == 0),
                "and a guest that ended by it");
    }

    const std::string json = to_json(results);
    require(json == to_json(from_json(json, "results.json")), "results.json is read as it was written");
    (void)to_tap(results);
    (void)to_junit(results);
    (void)trace_of(results).dump();
    (void)summary(results, Colour::off);
}

} // namespace spinkick::fuzz
