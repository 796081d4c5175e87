// SPDX-License-Identifier: BSD-2-Clause
//
// Names of the image's functions, for backtraces. The table is made from the first link by symbols.awk and put in by a
// second one; text comes before it in the image, so that no address moves in between.
#pragma once

#include <cstdint>
#include <string_view>

namespace spinkick {

struct Symbol {
    std::string_view name; ///< empty: no function there
    std::uint64_t offset = 0;
};

/// The function that contains `address` (virtual).
[[nodiscard]] Symbol symbol_of(std::uint64_t address) noexcept;

} // namespace spinkick
