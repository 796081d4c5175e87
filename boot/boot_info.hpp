// SPDX-License-Identifier: BSD-2-Clause
//
// Where every boot protocol ends: one structure with all that a loader told us, copied, so that its memory may be
// reused. The parsers read physical memory through a PhysicalReader and trust nothing they find there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "boot/memory_map.hpp"
#include "kernel/text.hpp"

namespace spinkick::boot {

enum class Protocol : std::uint8_t { none, pvh, multiboot2, xen_pv };

struct PhysicalRange {
    std::uint64_t base = 0;
    std::uint64_t size = 0;
};

struct BootInfo {
    static constexpr std::size_t kCommandLineBytes = 4096;
    static constexpr std::size_t kMostModules = 8;
    static constexpr std::size_t kRsdpBytes = 36;

    Protocol protocol = Protocol::none;
    /// Empty if the loader gave none: a Xen PVH dom0 asks Xen.
    MemoryMap memory;

    char command_line[kCommandLineBytes] = {};
    std::size_t command_line_size = 0;

    std::uint64_t rsdp_paddr = 0;                  ///< 0: not told
    std::array<std::byte, kRsdpBytes> rsdp_copy{}; ///< multiboot2 hands over the bytes, not the place
    std::size_t rsdp_copy_size = 0;                ///< 0: none

    std::array<PhysicalRange, kMostModules> modules{};
    std::size_t module_count = 0;

    PhysicalRange image; ///< of this kernel; from the linker, not from the loader

    [[nodiscard]] constexpr std::string_view command_line_view() const noexcept {
        return {command_line, command_line_size};
    }
};

/// Makes a physical range readable, or says that it cannot. `map` returns exactly `size` bytes or nothing, and what it
/// returned stays readable until the parser is done.
struct PhysicalReader {
    std::optional<std::span<const std::byte>> (*map)(void* context, std::uint64_t address, std::size_t size) noexcept;
    void* context = nullptr;

    [[nodiscard]] std::optional<std::span<const std::byte>> read(std::uint64_t address,
                                                                 std::size_t size) const noexcept {
        return map(context, address, size);
    }
};

/// Copies the terminated string at `address`. False with an error if it is not readable or longer than the space.
[[nodiscard]] bool read_command_line(std::uint64_t address, const PhysicalReader& reader, BootInfo& out,
                                     ErrorText& error) noexcept;
/// The same from bytes that hold the string and its NUL.
[[nodiscard]] bool copy_command_line(std::span<const std::byte> bytes, BootInfo& out, ErrorText& error) noexcept;

} // namespace spinkick::boot
