// SPDX-License-Identifier: BSD-2-Clause
//
// The input as physical memory: one block at a fixed address, and nothing around it. Each read is a heap block of its
// own and of exactly its size, so that AddressSanitizer sees the first byte that is read beyond what was asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

namespace spinkick::fuzz {

class PhysicalMemory {
  public:
    PhysicalMemory(std::uint64_t base, Input content)
        : base_(base), bytes_(reinterpret_cast<const std::byte*>(content.data()),
                              reinterpret_cast<const std::byte*>(content.data()) + content.size()) {}

    [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }
    void pad_to(std::size_t size) {
        if (bytes_.size() < size)
            bytes_.resize(size);
    }

    /// The part of the block at an address; nothing if it is not all there.
    [[nodiscard]] std::optional<std::span<std::byte>> part(std::uint64_t address, std::size_t size) noexcept {
        const std::uint64_t offset = address - base_;
        if (address < base_ || offset > bytes_.size() || bytes_.size() - offset < size)
            return std::nullopt;
        return bytes().subspan(static_cast<std::size_t>(offset), size);
    }

    [[nodiscard]] std::optional<std::span<const std::byte>> read(std::uint64_t address, std::size_t size) {
        const auto from = part(address, size);
        if (!from)
            return std::nullopt;
        given_.push_back(std::make_unique<std::byte[]>(size));
        std::copy(from->begin(), from->end(), given_.back().get());
        return std::span<const std::byte>{given_.back().get(), size};
    }

  private:
    std::uint64_t base_;
    std::vector<std::byte> bytes_;
    std::vector<std::unique_ptr<std::byte[]>> given_; ///< what was read stays readable
};

} // namespace spinkick::fuzz
