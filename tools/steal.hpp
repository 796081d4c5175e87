// SPDX-License-Identifier: BSD-2-Clause
//
// Time in which the hypervisor ran something else while a vCPU wanted to run, as a part of what the vCPUs of a
// measurement had. A run with much of it measured the host's other work.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/serial_stream.hpp"

namespace spinkick::report {

struct Steal {
    double part = 0;   ///< of duration times vCPUs
    std::string where; ///< the measurement
};

/// The measurement with most of it. Nothing if no benchmark ran or none says.
[[nodiscard]] std::optional<Steal> worst_steal(const std::vector<Json>& records);

/// "38.2 % steal in contention of tas/native, repetition 2"
[[nodiscard]] std::string text_of(const Steal& steal);

/// What the runner was told by --steal-limit, in percent, as it stands in the context record.
[[nodiscard]] std::optional<double> steal_limit_in(const Json& context);

} // namespace spinkick::report
