// SPDX-License-Identifier: BSD-2-Clause
//
// bench.event_channels: from the send to the receiver, for every way in which Xen tells of an event, with both forms of
// event channels beside each other.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report {

/// All events of one way under one form; times are upper bounds of histogram buckets, as the image has them.
struct EventCell {
    std::uint64_t count = 0, p50_ns = 0, p99_ns = 0, max_ns = 0;
};

struct EventRow {
    std::string platform, notice, receiver;
    std::optional<EventCell> two_level, fifo;
};

struct EventTable {
    std::vector<EventRow> rows; ///< in the order of the image, platform by platform
    std::vector<std::string> problems;
};

[[nodiscard]] EventTable event_table(const Results& results);
[[nodiscard]] std::string text_of(const EventTable& table);

} // namespace spinkick::report
