// SPDX-License-Identifier: BSD-2-Clause
//
// Builds the binary structures that firmware and loaders would leave in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace spinkick::test {

class Bytes {
  public:
    template <class T>
    Bytes& put(T value) {
        const auto* const from = reinterpret_cast<const std::byte*>(&value);
        data_.insert(data_.end(), from, from + sizeof value);
        return *this;
    }
    Bytes& u8(std::uint64_t value) { return put(static_cast<std::uint8_t>(value)); }
    Bytes& u16(std::uint64_t value) { return put(static_cast<std::uint16_t>(value)); }
    Bytes& u32(std::uint64_t value) { return put(static_cast<std::uint32_t>(value)); }
    Bytes& u64(std::uint64_t value) { return put(value); }
    Bytes& text(std::string_view value) {
        const auto* const from = reinterpret_cast<const std::byte*>(value.data());
        data_.insert(data_.end(), from, from + value.size());
        return *this;
    }
    Bytes& bytes(const std::vector<std::byte>& value) {
        data_.insert(data_.end(), value.begin(), value.end());
        return *this;
    }
    Bytes& zeros(std::size_t n) {
        data_.resize(data_.size() + n);
        return *this;
    }
    Bytes& align(std::size_t to) { return zeros((to - data_.size() % to) % to); }

    [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return data_.size(); }

  private:
    std::vector<std::byte> data_;
};

/// Overwrites bytes at an offset.
template <class T>
void poke(std::vector<std::byte>& data, std::size_t offset, T value) {
    std::memcpy(data.data() + offset, &value, sizeof value);
}

} // namespace spinkick::test
