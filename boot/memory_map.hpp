// SPDX-License-Identifier: BSD-2-Clause
//
// Physical memory as a loader describes it, in fixed space. Maps come unsorted, with overlaps and with empty entries;
// what is not listed as usable after all of it was read is not touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spinkick::boot {

/// In ascending order of what wins where two entries overlap. The values are our own: each protocol numbers its types
/// anew.
enum class MemoryType : std::uint8_t {
    usable,
    acpi_tables, ///< free after the tables were read; this kernel leaves them alone
    persistent,
    acpi_nvs,
    reserved,
    unusable, ///< reported as defective
};

struct MemoryRange {
    std::uint64_t base = 0;
    std::uint64_t size = 0;
    MemoryType type = MemoryType::reserved;

    [[nodiscard]] constexpr std::uint64_t end() const noexcept { return base + size; } // never wraps, see add()
};

class MemoryMap {
  public:
    static constexpr std::size_t kMostRanges = 128;

    /// Adds a range. Empty ones are passed over, one that runs past 2^64 - 1 is cut there. When the space is used up,
    /// usable memory is given up and counted, never a restriction on it.
    void add(std::uint64_t base, std::uint64_t size, MemoryType type) noexcept;
    /// Sorts by address, resolves overlaps by the more severe type, joins neighbours of one type. Once, after the last
    /// add().
    void clean() noexcept;

    [[nodiscard]] constexpr std::span<const MemoryRange> ranges() const noexcept { return {ranges_.data(), size_}; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    /// Ranges of usable memory that were given up for lack of space.
    [[nodiscard]] constexpr std::uint32_t given_up() const noexcept { return given_up_; }
    [[nodiscard]] std::uint64_t usable_bytes() const noexcept;
    /// True if all of [base, base + size) is usable. After clean().
    [[nodiscard]] bool is_usable(std::uint64_t base, std::uint64_t size) const noexcept;

  private:
    [[nodiscard]] static MemoryRange* smallest_usable(std::span<MemoryRange> ranges) noexcept;
    [[nodiscard]] bool make_room_for(MemoryType type) noexcept;
    [[nodiscard]] std::size_t cut_into_pieces() noexcept;

    std::array<MemoryRange, kMostRanges> ranges_{};
    std::array<MemoryRange, 2 * kMostRanges> pieces_{}; // work space of clean(): too large for a boot stack
    std::size_t size_ = 0;
    std::uint32_t given_up_ = 0;
};

/// Type numbers of BIOS function E820, which Xen and PVH use as well. Unknown ones are reserved.
[[nodiscard]] MemoryType memory_type_of_e820(std::uint32_t type) noexcept;

} // namespace spinkick::boot
