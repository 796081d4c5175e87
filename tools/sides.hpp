// SPDX-License-Identifier: BSD-2-Clause
//
// Two sets of results side by side: what each of them is, and what differs between them.
#pragma once

#include <string>
#include <string_view>

#include "tools/results.hpp"

namespace spinkick::report {

/// Boots in the results; the guests of --vms share one.
[[nodiscard]] std::size_t boots_in(const Results& results);

/// "BASE        3 boots of spinkick 0123abc, g++ 12.2.0, on nested-kvm; steal 38.1% of the vCPUs' time", and how the
/// results ended, if not with a pass.
[[nodiscard]] std::string side_text(std::string_view side, const Results& results);

/// Every field of the context records that has other values on the other side.
[[nodiscard]] std::string differences_text(const Results& base, const Results& next);

/// " (EMULATED time: ratios only)" or nothing.
[[nodiscard]] std::string_view emulation_text(bool emulated) noexcept;

} // namespace spinkick::report
