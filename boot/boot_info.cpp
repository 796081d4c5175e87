// SPDX-License-Identifier: BSD-2-Clause
#include "boot/boot_info.hpp"

#include <limits>

namespace spinkick::boot {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

void clear(BootInfo& out) noexcept {
    out.command_line_size = 0;
    out.command_line[0] = '\0';
}

/// Appends one character; false if the space is used up.
bool append(BootInfo& out, std::byte c) noexcept {
    if (out.command_line_size + 1 >= BootInfo::kCommandLineBytes)
        return false;
    out.command_line[out.command_line_size++] = static_cast<char>(c);
    out.command_line[out.command_line_size] = '\0';
    return true;
}

void set_too_long(ErrorText& error) noexcept {
    error.set("command line: more than %zu characters; shorten it", BootInfo::kCommandLineBytes - 1);
}

} // namespace

bool read_command_line(std::uint64_t address, const PhysicalReader& reader, BootInfo& out, ErrorText& error) noexcept {
    clear(out);
    // Page by page: the string may end just before memory that cannot be read.
    for (;;) {
        const std::uint64_t in_page = kPageBytes - address % kPageBytes;
        const auto piece = reader.read(address, static_cast<std::size_t>(in_page));
        if (!piece) {
            error.set("command line: memory at 0x%llx is not readable", static_cast<unsigned long long>(address));
            clear(out);
            return false;
        }
        for (const std::byte c : *piece) {
            if (c == std::byte{0})
                return true;
            if (!append(out, c)) {
                set_too_long(error);
                clear(out);
                return false;
            }
        }
        address += in_page; // wraps to 0 at the very end, which no reader maps or which ends by the length
    }
}

bool copy_command_line(std::span<const std::byte> bytes, BootInfo& out, ErrorText& error) noexcept {
    clear(out);
    for (const std::byte c : bytes) {
        if (c == std::byte{0})
            return true;
        if (!append(out, c)) {
            set_too_long(error);
            clear(out);
            return false;
        }
    }
    error.set("command line: no end in the %zu bytes of its tag", bytes.size());
    clear(out);
    return false;
}

} // namespace spinkick::boot
