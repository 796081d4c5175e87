// SPDX-License-Identifier: BSD-2-Clause
//
// Structures out of bytes that firmware, a loader or a table has written: nothing is read beyond their end, and nothing
// is expected to be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace spinkick {

using Bytes = std::span<const std::byte>;

/// The T at `offset`. False if it does not fit, and `out` is as before.
template <class T>
[[nodiscard]] bool fetch(Bytes bytes, std::size_t offset, T& out) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
        return false;
    std::memcpy(&out, bytes.data() + offset, sizeof(T));
    return true;
}

/// Modulo 256: 0 is a right checksum of ACPI and of the MP table.
[[nodiscard]] inline std::uint8_t sum(Bytes bytes) noexcept {
    std::uint8_t total = 0;
    for (const std::byte b : bytes)
        total = static_cast<std::uint8_t>(total + static_cast<std::uint8_t>(b));
    return total;
}

} // namespace spinkick
