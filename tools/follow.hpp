// SPDX-License-Identifier: BSD-2-Clause
//
// Stands between a running guest and its log: every byte goes to the log at once, and the person sees how far it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/serial_stream.hpp"

namespace spinkick::report {

struct FollowOptions {
    std::filesystem::path log;
    std::optional<std::uint32_t> total_timeout_s; ///< the runner's limit, shown beside the elapsed time
    bool plain = false;                           ///< lines even on a terminal
};

/// The one line that a terminal shows: "[ 12/47] lock.mutual_exclusion/tas/native  8 s, about 22 s left (limit 90 s)".
[[nodiscard]] std::string progress_line(const Stream& stream, std::chrono::milliseconds elapsed,
                                        std::optional<std::uint32_t> total_timeout_s);

/// The line for a test that has just got its result: "[ 12/47] ok lock.mutual_exclusion/tas/native".
[[nodiscard]] std::string completed_line(const Stream& stream, std::uint32_t number, std::size_t done);

/// Copies `input` to the log until it ends and shows progress on `output`. Throws InputError if the log cannot be
/// opened, or, after the input has ended, if it could not be written to its end.
void follow(int input, int output, const FollowOptions& options);

} // namespace spinkick::report
