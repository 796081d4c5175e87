// SPDX-License-Identifier: BSD-2-Clause
//
// The content of results.json: what one run, or several merged ones, ended with. Every other file and every table is
// written from this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tools/judge.hpp"
#include "tools/serial_stream.hpp"

namespace spinkick::report {

inline constexpr int kSchema = 1;

/// Which of several runs: numbers under --repeat and --vms.
struct RunId {
    std::optional<std::uint32_t> run;
    std::optional<std::uint32_t> vm;

    friend constexpr bool operator==(const RunId&, const RunId&) noexcept = default;
    friend constexpr bool operator<(const RunId& a, const RunId& b) noexcept {
        return std::tie(a.run, a.vm) < std::tie(b.run, b.vm);
    }
};

/// "run 2, vm 1", or empty.
[[nodiscard]] std::string text_of(const RunId& id);

struct TestResult {
    RunId id;
    std::string name;
    Status status = Status::not_run;
    std::string reason;
    std::optional<std::uint64_t> ns;
};

/// How many tests ended in which way, those without a result included.
struct Tally : Counts {
    std::uint32_t not_run = 0;

    void add(Status status) noexcept;
    [[nodiscard]] std::uint32_t total() const noexcept { return pass + fail + error + skip + not_run; }
};

/// How one run ended.
struct RunVerdict {
    RunId id;
    std::string platform;
    std::string timing; ///< "emulated" or "real"
    Word word = Word::ERROR;
    std::string reason;
    std::vector<std::string> notes;
};

struct Results {
    std::vector<Json> records;
    std::vector<TestResult> tests;
    std::vector<RunVerdict> runs; ///< never empty

    [[nodiscard]] Word word() const noexcept;
    [[nodiscard]] Tally tally() const noexcept;
    /// Reason of the first run that ended with the word of the whole.
    [[nodiscard]] std::string reason() const;
};

/// `"run"` and `"vm"` of a record.
[[nodiscard]] RunId run_id_of(const Json& record);

[[nodiscard]] std::string to_json(const Results& results);
/// Throws InputError, which names `source`, for anything that is not a whole results.json of a known schema.
[[nodiscard]] Results from_json(std::string_view text, const std::string& source);
/// Reads a results.json, or the one in a directory.
[[nodiscard]] Results load_results(const std::filesystem::path& path);
/// Several runs as one; boots without a number get the next free one.
[[nodiscard]] Results merge(std::vector<Results> parts);

/// Names that are unique in the whole, in the order of results.tests: a run's mark is added where there are several
/// runs, a number where one run has used a name twice.
[[nodiscard]] std::vector<std::string> unique_names(const Results& results);

/// Writes a file that appears whole or not at all. Throws InputError.
void write_file(const std::filesystem::path& path, const std::string& text);
/// Writes results.tap, results.json, junit.xml, and trace.json if something was traced; each appears whole or not at
/// all.
void write_files(const Results& results, const std::filesystem::path& directory);

} // namespace spinkick::report
