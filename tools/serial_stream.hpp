// SPDX-License-Identifier: BSD-2-Clause
//
// What a serial log says, before anyone judges it. The forms are those of docs/report-format.md; they are looked for
// anywhere in the bytes, because firmware, loaders and hypervisors write in between, in front of a line ("(d0) ok 3
// ...") and, in the worst case, inside it. A line that noise has changed must become no line, or at least never a
// better one:
//
//   * a verdict counts only with its checksum;
//   * a result counts only if it has the name under which its test began;
//   * behind glued text a result counts only for the test that is running, and a pass only together with a verdict
//   whose
//     counts agree ("nXt ok 5 lock.x" contains "ok 5 lock.x");
//   * a last line without its newline was cut and counts for nothing but a verdict, which has a checksum.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/json.hpp"
#include "tools/verdict_line.hpp"

namespace spinkick::report {

enum class Status : std::uint8_t { pass, skip, error, fail, not_run };

[[nodiscard]] std::string_view name_of(Status status) noexcept;
[[nodiscard]] std::optional<Status> status_named(std::string_view name) noexcept;

/// One planned test as the stream shows it.
struct StreamTest {
    std::string name;             ///< empty until a begin or result line names it
    bool begun = false;           ///< its begin line was seen
    std::optional<Status> status; ///< none: no result line was seen
    std::string reason;
    bool glued = false;              ///< foreign letters stood directly before the result
    std::optional<std::uint64_t> ns; ///< guest time, if the stream tells
};

/// One measurement, with the number of the test that was running (0: none).
struct StreamRecord {
    std::uint32_t test = 0;
    Json json;
};

struct Stream {
    std::uint64_t bytes = 0;
    std::uint64_t nul_bytes = 0;
    std::optional<std::string> boot; ///< boot protocol of the first boot line
    bool restarted = false;          ///< a second boot line came; nothing behind it was read
    bool ktap = false;
    std::optional<std::uint32_t> plan;
    std::map<std::uint32_t, StreamTest> tests; ///< by number
    std::vector<std::uint32_t> completed;      ///< numbers in the order of their results
    std::uint32_t running = 0;                 ///< number of the test that began last and has no result, or 0
    std::vector<StreamRecord> records;
    std::optional<std::string> panic;
    bool panic_after_verdict = false;
    std::optional<std::string> error;   ///< text of `spinkick: error:`
    bool exit_device_absent = false;    ///< the image says that it had to power off instead
    std::optional<VerdictLine> verdict; ///< the first one whose checksum matches
    bool verdicts_differ = false;
    std::uint32_t damaged_verdicts = 0;
    std::uint32_t damaged_records = 0;
    std::string last_line;              ///< the last one with a printable character, cut or not
    std::vector<std::string> conflicts; ///< statements of the stream that contradict each other

    /// The image itself has written something.
    [[nodiscard]] bool started() const noexcept {
        return boot || ktap || plan || verdict || panic || error || !tests.empty();
    }
    /// "test 12 lock.mutual_exclusion/tas/native was running"; if no test was, the last line; empty without one.
    [[nodiscard]] std::string running_text() const;
};

/// Reads a log in pieces of any size.
class StreamParser {
  public:
    void feed(std::string_view bytes);
    /// Ends the input, or one file of several: what has no newline by now never gets one.
    void end();

    [[nodiscard]] const Stream& stream() const noexcept { return stream_; }

  private:
    void line(std::string_view raw, bool complete);
    void verdicts_in(std::string_view text);
    /// Tries every form at one position of a line; true if one of them is there.
    bool form_at(std::string_view text, std::size_t position, bool complete);
    bool plan_at(std::string_view text, std::size_t position, bool complete);
    bool result_at(std::string_view text, std::size_t position, bool complete);
    bool comment_at(std::string_view text, std::size_t position, bool complete);
    void record(std::string_view json);

    Stream stream_;
    std::string line_;
    bool overlong_ = false;
};

} // namespace spinkick::report
