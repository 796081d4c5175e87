// SPDX-License-Identifier: BSD-2-Clause
#include "boot/multiboot2_info.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernel/bytes.hpp"

namespace spinkick::boot {
namespace {

enum class Tag : std::uint32_t {
    end = 0,
    command_line = 1,
    module = 3,
    memory_map = 6,
    acpi_old_rsdp = 14,
    acpi_new_rsdp = 15,
    efi_memory_map = 17,
    efi_boot_services = 18,
};

struct Header {
    std::uint32_t total_size;
    std::uint32_t reserved;
};
static_assert(std::is_standard_layout_v<Header> && sizeof(Header) == 8);

struct TagHeader {
    std::uint32_t type;
    std::uint32_t size; // with this header, without the padding behind
};
static_assert(std::is_standard_layout_v<TagHeader> && sizeof(TagHeader) == 8);

struct ModuleTag {
    std::uint32_t start;
    std::uint32_t end; // exclusive; a string follows
};
static_assert(std::is_standard_layout_v<ModuleTag> && sizeof(ModuleTag) == 8);

struct MemoryMapTag {
    std::uint32_t entry_size;
    std::uint32_t entry_version;
};
static_assert(std::is_standard_layout_v<MemoryMapTag> && sizeof(MemoryMapTag) == 8);

struct MemoryMapEntry {
    std::uint64_t base;
    std::uint64_t length;
    std::uint32_t type; // 1 RAM, 3 ACPI, 4 NVS, 5 defective, others reserved: as E820
    std::uint32_t reserved;
};
static_assert(std::is_standard_layout_v<MemoryMapEntry> && sizeof(MemoryMapEntry) == 24);

struct EfiMemoryMapTag {
    std::uint32_t descriptor_size;
    std::uint32_t descriptor_version;
};
static_assert(std::is_standard_layout_v<EfiMemoryMapTag> && sizeof(EfiMemoryMapTag) == 8);

/// EFI_MEMORY_DESCRIPTOR, UEFI Specification 7.2.
struct EfiDescriptor {
    std::uint32_t type;
    std::uint32_t padding;
    std::uint64_t physical_start;
    std::uint64_t virtual_start;
    std::uint64_t pages; // of 4 KiB
    std::uint64_t attribute;
};
static_assert(std::is_standard_layout_v<EfiDescriptor> && sizeof(EfiDescriptor) == 40);

constexpr std::size_t kAlignment = 8;
/// GRUB's is some KiB; the tags hold no bulk data for us.
constexpr std::uint32_t kLargestInfo = 1u << 20;
constexpr std::size_t kOldRsdpBytes = 20;

/// After ExitBootServices, which the loader has called, boot services memory is free as well.
MemoryType memory_type_of_efi(std::uint32_t type) noexcept {
    switch (type) {
    case 1: // EfiLoaderCode
    case 2: // EfiLoaderData
    case 3: // EfiBootServicesCode
    case 4: // EfiBootServicesData
    case 7: // EfiConventionalMemory
        return MemoryType::usable;
    case 8: // EfiUnusableMemory
        return MemoryType::unusable;
    case 9: // EfiACPIReclaimMemory
        return MemoryType::acpi_tables;
    case 10: // EfiACPIMemoryNVS
        return MemoryType::acpi_nvs;
    case 14: // EfiPersistentMemory
        return MemoryType::persistent;
    default:
        return MemoryType::reserved;
    }
}

/// What the tags are read into, and the tags that wait for the end of the row.
struct Reading {
    BootInfo& out;
    ErrorText& error;
    Bytes memory_map;
    Bytes efi_memory_map;
    bool boot_services = false;
};

void read_module(Bytes body, Reading& reading) noexcept {
    ModuleTag tag{};
    if (!fetch(body, 0, tag)) {
        reading.error.set_first("multiboot2: module tag of %zu bytes", body.size());
        return;
    }
    if (tag.end < tag.start) {
        reading.error.set_first("multiboot2: module from 0x%x to 0x%x", tag.start, tag.end);
        return;
    }
    if (reading.out.module_count == BootInfo::kMostModules) {
        reading.error.set_first("multiboot2: more than %zu modules", BootInfo::kMostModules);
        return;
    }
    reading.out.modules[reading.out.module_count++] = {tag.start, tag.end - tag.start};
}

/// The new RSDP knows more than the old one and wins, whatever the order of the tags.
void read_rsdp(Bytes body, bool is_new, Reading& reading) noexcept {
    const std::size_t least = is_new ? BootInfo::kRsdpBytes : kOldRsdpBytes;
    if (body.size() < least) {
        reading.error.set_first("multiboot2: RSDP tag of %zu bytes, needs %zu", body.size(), least);
        return;
    }
    if (!is_new && reading.out.rsdp_copy_size > kOldRsdpBytes)
        return;
    std::copy_n(body.begin(), least, reading.out.rsdp_copy.begin());
    reading.out.rsdp_copy_size = least;
}

void read_memory_map(Reading& reading) noexcept {
    MemoryMapTag tag{};
    if (!fetch(reading.memory_map, 0, tag) || tag.entry_size < sizeof(MemoryMapEntry) ||
        (reading.memory_map.size() - sizeof tag) % tag.entry_size != 0) {
        reading.error.set_first("multiboot2: memory map of %zu bytes with entries of %u", reading.memory_map.size(),
                                tag.entry_size);
        return;
    }
    MemoryMapEntry entry{};
    for (std::size_t at = sizeof tag; fetch(reading.memory_map, at, entry); at += tag.entry_size)
        reading.out.memory.add(entry.base, entry.length, memory_type_of_e820(entry.type));
}

void read_efi_memory_map(Reading& reading) noexcept {
    EfiMemoryMapTag tag{};
    if (!fetch(reading.efi_memory_map, 0, tag) || tag.descriptor_size < sizeof(EfiDescriptor) ||
        (reading.efi_memory_map.size() - sizeof tag) % tag.descriptor_size != 0) {
        reading.error.set_first("multiboot2: EFI memory map of %zu bytes with descriptors of %u",
                                reading.efi_memory_map.size(), tag.descriptor_size);
        return;
    }
    constexpr std::uint64_t kPageBytes = 4096;
    constexpr std::uint64_t kMostPages = std::numeric_limits<std::uint64_t>::max() / kPageBytes;
    EfiDescriptor descriptor{};
    for (std::size_t at = sizeof tag; fetch(reading.efi_memory_map, at, descriptor); at += tag.descriptor_size)
        reading.out.memory.add(descriptor.physical_start, std::min(descriptor.pages, kMostPages) * kPageBytes,
                               memory_type_of_efi(descriptor.type));
}

void read_tag(Tag tag, Bytes body, Reading& reading) noexcept {
    switch (tag) {
    case Tag::command_line: {
        ErrorText error;
        if (!copy_command_line(body, reading.out, error))
            reading.error.set_first("multiboot2: %s", error.c_str());
        break;
    }
    case Tag::module:
        read_module(body, reading);
        break;
    case Tag::memory_map:
        reading.memory_map = body;
        break;
    case Tag::efi_memory_map:
        reading.efi_memory_map = body;
        break;
    case Tag::acpi_old_rsdp:
    case Tag::acpi_new_rsdp:
        read_rsdp(body, tag == Tag::acpi_new_rsdp, reading);
        break;
    case Tag::efi_boot_services:
        reading.boot_services = true;
        break;
    case Tag::end:
    default: // names, framebuffers, symbols: not for us
        break;
    }
}

/// Walks the row; false if it does not end in an end tag.
bool read_tags(Bytes info, Reading& reading) noexcept {
    std::size_t at = sizeof(Header);
    for (;;) {
        TagHeader tag{};
        if (!fetch(info, at, tag)) {
            reading.error.set_first("multiboot2: no end tag in %zu bytes", info.size());
            return false;
        }
        if (tag.size < sizeof tag || tag.size > info.size() - at) {
            reading.error.set_first("multiboot2: tag %u at offset %zu of %zu has the size %u", tag.type, at,
                                    info.size(), tag.size);
            return false;
        }
        if (static_cast<Tag>(tag.type) == Tag::end)
            return true;
        read_tag(static_cast<Tag>(tag.type), info.subspan(at + sizeof tag, tag.size - sizeof tag), reading);
        at += (tag.size + kAlignment - 1) / kAlignment * kAlignment; // no overflow: size is at most kLargestInfo
        if (at > info.size())
            at = info.size();
    }
}

} // namespace

bool read_multiboot2_info(std::uint64_t address, const PhysicalReader& reader, BootInfo& out,
                          ErrorText& error) noexcept {
    out.protocol = Protocol::multiboot2;
    Header header{};
    const auto start = reader.read(address, sizeof header);
    if (address % kAlignment != 0 || !start || !fetch(*start, 0, header)) {
        error.set("multiboot2: information at 0x%llx is not readable or not 8-aligned",
                  static_cast<unsigned long long>(address));
        return false;
    }
    if (header.total_size < sizeof(Header) + sizeof(TagHeader) || header.total_size > kLargestInfo) {
        error.set("multiboot2: information of %u bytes; from %zu to %u are believed", header.total_size,
                  sizeof(Header) + sizeof(TagHeader), kLargestInfo);
        return false;
    }
    const auto info = reader.read(address, header.total_size);
    if (!info || info->size() < header.total_size) {
        error.set("multiboot2: not all of the %u bytes at 0x%llx are readable", header.total_size,
                  static_cast<unsigned long long>(address));
        return false;
    }
    Reading reading{.out = out, .error = error, .memory_map = {}, .efi_memory_map = {}};
    (void)read_tags(*info, reading);
    // One map is enough: the loader made the first one of the second one.
    if (!reading.memory_map.empty())
        read_memory_map(reading);
    else if (!reading.efi_memory_map.empty())
        read_efi_memory_map(reading);
    out.memory.clean();
    if (reading.boot_services)
        error.set_first("multiboot2: the loader has not left EFI boot services");
    if (out.memory.empty())
        error.set_first("multiboot2: no memory map (tag 6 or 17)");
    return error.empty();
}

} // namespace spinkick::boot
