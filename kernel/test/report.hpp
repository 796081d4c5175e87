// SPDX-License-Identifier: BSD-2-Clause
//
// The verdict lines of the serial stream, in the words of docs/report-format.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/test/test.hpp"
#include "kernel/types.hpp"

namespace spinkick::test {

/// Verdict of a whole run.
enum class Verdict : std::uint8_t { pass, fail, error, skip };

struct Counts {
    std::uint32_t plan = 0, pass = 0, fail = 0, error = 0, skip = 0;

    void add(Status status) noexcept;
};

/// FAIL if any test failed, else ERROR if any erred, else PASS if any passed, else SKIP.
[[nodiscard]] Verdict verdict_of(const Counts& counts) noexcept;
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;
[[nodiscard]] std::string_view name(Status status) noexcept;

/// `KTAP version 1` and the context record.
void report_header() noexcept;
/// Before the first test or, where nobody knows it by then, behind the last one.
void report_plan(std::uint32_t plan) noexcept;
void report_begin(std::uint32_t number, std::string_view name) noexcept;
/// The record of type `test`; `ns` is the time that the body took.
void report_duration(std::string_view name, Status status, Nanoseconds elapsed) noexcept;
/// `status` is not none.
void report_result(std::uint32_t number, std::string_view name, Status status, std::string_view reason) noexcept;
/// Writes the verdict line three times and returns the verdict.
Verdict report_verdict(const Counts& counts) noexcept;
/// `spinkick: error: TEXT` and the verdict ERROR: for bad input, before any test.
Verdict report_bad_input(std::string_view text) noexcept;

} // namespace spinkick::test
