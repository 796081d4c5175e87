// SPDX-License-Identifier: BSD-2-Clause
//
// CRC-32 of IEEE 802.3 (reflected polynomial 0xedb88320, start and final xor all ones): the same number as zlib's
// crc32(), so that any host program checks a verdict line with what it has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spinkick {

namespace detail {
inline constexpr auto kCrc32Table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit)
            c = (c >> 1) ^ ((c & 1) != 0 ? 0xedb88320u : 0u);
        table[i] = c;
    }
    return table;
}();
} // namespace detail

[[nodiscard]] constexpr std::uint32_t crc32(std::string_view text) noexcept {
    std::uint32_t crc = 0xffffffffu;
    for (const char c : text)
        crc = (crc >> 8) ^ detail::kCrc32Table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
    return ~crc;
}

static_assert(crc32("123456789") == 0xcbf43926u, "the check value of CRC-32/ISO-HDLC");

} // namespace spinkick
