// SPDX-License-Identifier: BSD-2-Clause
#include "boot/memory_map.hpp"

#include <algorithm>
#include <limits>

namespace spinkick::boot {

void MemoryMap::add(std::uint64_t base, std::uint64_t size, MemoryType type) noexcept {
    size = std::min(size, std::numeric_limits<std::uint64_t>::max() - base);
    if (size == 0)
        return;
    // EFI maps are long rows of neighbours that mean the same to us.
    if (size_ != 0 && ranges_[size_ - 1].type == type && ranges_[size_ - 1].end() == base) {
        ranges_[size_ - 1].size += size;
        return;
    }
    if (size_ == kMostRanges && !make_room_for(type))
        return;
    ranges_[size_++] = {base, size, type};
}

MemoryRange* MemoryMap::smallest_usable(std::span<MemoryRange> ranges) noexcept {
    MemoryRange* smallest = nullptr;
    for (MemoryRange& range : ranges)
        if (range.type == MemoryType::usable && (smallest == nullptr || range.size < smallest->size))
            smallest = &range;
    return smallest;
}

bool MemoryMap::make_room_for(MemoryType type) noexcept {
    clean();
    if (size_ < kMostRanges)
        return true;
    if (type == MemoryType::usable) {
        ++given_up_;
        return false;
    }
    // A restriction may cover usable memory that comes before or after it in the map: it must not be the one to go.
    MemoryRange* const smallest = smallest_usable({ranges_.data(), size_});
    if (smallest == nullptr)
        return false;
    ++given_up_;
    *smallest = ranges_[--size_];
    return true;
}

std::size_t MemoryMap::cut_into_pieces() noexcept {
    // Between two neighbouring borders the set of covering entries is constant; the most severe of them names the
    // piece.
    std::array<std::uint64_t, 2 * kMostRanges> borders;
    std::size_t count = 0;
    for (const MemoryRange& range : ranges()) {
        borders[count++] = range.base;
        borders[count++] = range.end();
    }
    std::sort(borders.begin(), borders.begin() + count);

    std::size_t pieces = 0;
    for (std::size_t i = 0; i + 1 < count; ++i) {
        const std::uint64_t base = borders[i];
        const std::uint64_t end = borders[i + 1];
        bool covered = false;
        MemoryType type = MemoryType::usable;
        for (const MemoryRange& range : ranges()) {
            if (base != end && range.base <= base && end <= range.end()) {
                covered = true;
                type = std::max(type, range.type);
            }
        }
        if (!covered)
            continue;
        if (pieces != 0 && pieces_[pieces - 1].end() == base && pieces_[pieces - 1].type == type)
            pieces_[pieces - 1].size += end - base;
        else
            pieces_[pieces++] = {base, end - base, type};
    }
    return pieces;
}

void MemoryMap::clean() noexcept {
    std::size_t pieces = cut_into_pieces();
    // Overlaps can make more pieces than there is room for.
    while (pieces > kMostRanges) {
        MemoryRange* const smallest = smallest_usable({pieces_.data(), pieces});
        if (smallest == nullptr) {
            pieces = kMostRanges; // all are restrictions, and from now on there is no room for usable memory
            break;
        }
        ++given_up_;
        std::copy(smallest + 1, pieces_.data() + pieces, smallest); // stays sorted
        --pieces;
    }
    std::copy_n(pieces_.begin(), pieces, ranges_.begin());
    size_ = pieces;
}

std::uint64_t MemoryMap::usable_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const MemoryRange& range : ranges())
        if (range.type == MemoryType::usable)
            bytes += range.size;
    return bytes;
}

bool MemoryMap::is_usable(std::uint64_t base, std::uint64_t size) const noexcept {
    for (const MemoryRange& range : ranges())
        if (range.type == MemoryType::usable && base >= range.base && base < range.end())
            return size <= range.end() - base;
    return false;
}

MemoryType memory_type_of_e820(std::uint32_t type) noexcept {
    switch (type) {
    case 1:
        return MemoryType::usable;
    case 3:
        return MemoryType::acpi_tables;
    case 4:
        return MemoryType::acpi_nvs;
    case 5:
        return MemoryType::unusable;
    case 7:
        return MemoryType::persistent;
    default: // 2 reserved, 6 disabled, and whatever comes later
        return MemoryType::reserved;
    }
}

} // namespace spinkick::boot
