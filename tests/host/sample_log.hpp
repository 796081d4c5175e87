// SPDX-License-Identifier: BSD-2-Clause
//
// Serial logs as the image writes them, for the tests of their readers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tools/crc32.hpp"
#include "tools/judge.hpp"
#include "tools/serial_stream.hpp"

namespace spinkick::report::sample {

// The checksum of this line was computed by zlib.
inline constexpr std::string_view kKnownVerdict =
    "spinkick: verdict: PASS plan=5 pass=4 fail=0 error=0 skip=1 crc=a5d8adb7";

inline std::string verdict(std::string_view word, std::uint32_t plan, const Counts& counts) {
    const std::string text = fmt::format("spinkick: verdict: {} plan={} pass={} fail={} error={} skip={} ", word, plan,
                                         counts.pass, counts.fail, counts.error, counts.skip);
    return fmt::format("{}crc={:08x}\n", text, crc32(text));
}

inline std::string three(const std::string& line) { return line + line + line; }

inline constexpr std::string_view kStart = "spinkick: boot: pvh\n"
                                           "KTAP version 1\n"
                                           "# json {\"type\":\"context\",\"schema\":1,\"boot\":\"pvh\",\"cpus\":4}\n"
                                           "1..5\n";
inline constexpr std::string_view kTests = "# begin 1 boot.tables\n"
                                           "ok 1 boot.tables\n"
                                           "# begin 2 smp.all_up\n"
                                           "# json {\"type\":\"test\",\"name\":\"smp.all_up\",\"ns\":1500000}\n"
                                           "ok 2 smp.all_up\n"
                                           "# begin 3 lock.mutual_exclusion/tas/native\n"
                                           "ok 3 lock.mutual_exclusion/tas/native\n"
                                           "# begin 4 lock.mutual_exclusion/pv-queued/kvm\n"
                                           "ok 4 lock.mutual_exclusion/pv-queued/kvm # SKIP no PV_UNHALT\n"
                                           "# begin 5 bench.contention\n"
                                           "# lock 5 tas.native is the slowest\n"
                                           "ok 5 bench.contention\n";

/// Four passes and a skip.
inline std::string passing() {
    return std::string{kStart} + std::string{kTests} + three(verdict("PASS", 5, {4, 0, 0, 1}));
}

/// The same with test 3 failed.
inline std::string failing() {
    std::string log = std::string{kStart} + std::string{kTests};
    const std::string_view good = "\nok 3 lock.mutual_exclusion/tas/native\n";
    log.replace(log.find(good), good.size(), "\nnot ok 3 lock.mutual_exclusion/tas/native # two CPUs inside\n");
    return log + three(verdict("FAIL", 5, {3, 1, 0, 1}));
}

/// A log without its verdict: what a crash or a hang leaves.
inline std::string without_verdict(const std::string& log) { return log.substr(0, log.find(kVerdictStart)); }

inline bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

inline Stream parse(std::string_view log) {
    StreamParser parser;
    parser.feed(log);
    parser.end();
    return parser.stream();
}

inline Word word_for(std::string_view log, const Ending& ending = {}) { return judge(parse(log), ending).word; }

} // namespace spinkick::report::sample
