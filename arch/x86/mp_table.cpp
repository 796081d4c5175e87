// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/mp_table.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

namespace spinkick::x86 {
namespace {

using namespace std::string_view_literals;

struct [[gnu::packed]] FloatingPointer {
    char signature[4];
    std::uint32_t table;
    std::uint8_t length; // of this structure, in paragraphs of 16 bytes
    std::uint8_t revision;
    std::uint8_t checksum; // makes the structure sum up to 0
    std::uint8_t default_configuration;
    std::uint8_t features[4];
};
static_assert(std::is_standard_layout_v<FloatingPointer> && sizeof(FloatingPointer) == 16);

struct [[gnu::packed]] ConfigurationTable {
    char signature[4];
    std::uint16_t length; // of header and base entries
    std::uint8_t revision;
    std::uint8_t checksum; // makes them sum up to 0
    char oem_id[8];
    char product_id[12];
    std::uint32_t oem_table;
    std::uint16_t oem_table_size;
    std::uint16_t entry_count;
    std::uint32_t lapic_address;
    std::uint16_t extended_length;
    std::uint8_t extended_checksum;
    std::uint8_t reserved;
};
static_assert(std::is_standard_layout_v<ConfigurationTable> && sizeof(ConfigurationTable) == 44);
static_assert(offsetof(ConfigurationTable, entry_count) == 34 && offsetof(ConfigurationTable, lapic_address) == 36);

struct [[gnu::packed]] Processor {
    std::uint8_t type;
    std::uint8_t apic_id;
    std::uint8_t apic_version;
    std::uint8_t flags;
    std::uint32_t signature;
    std::uint32_t features;
    std::uint8_t reserved[8];
};
static_assert(std::is_standard_layout_v<Processor> && sizeof(Processor) == 20);

constexpr std::uint8_t kProcessor = 0;
constexpr std::uint8_t kHighestType = 4; // bus, I/O APIC, interrupt lines
constexpr std::size_t kOtherBytes = 8;
constexpr std::uint8_t kEnabled = 1;

struct Area {
    std::uint64_t base;
    std::size_t size;
};
/// The last KiB of base memory, where an EBDA of one KiB would be too, and the BIOS ROM. An EBDA elsewhere would have
/// to be found by a pointer in the BIOS data area, and no machine with one lacks ACPI.
constexpr std::array kAreas{Area{0x9fc00, 0x400}, Area{0xf0000, 0x10000}};
constexpr std::size_t kAlignment = 16;

std::optional<FloatingPointer> find_pointer(const boot::PhysicalReader& reader) noexcept {
    for (const auto& area : kAreas) {
        const auto bytes = reader.read(area.base, area.size);
        FloatingPointer pointer{};
        for (std::size_t at = 0; bytes && fetch(*bytes, at, pointer); at += kAlignment)
            if (std::string_view(pointer.signature, 4) == "_MP_"sv && pointer.length == 1 &&
                sum(bytes->subspan(at, sizeof pointer)) == 0)
                return pointer;
    }
    return std::nullopt;
}

/// By the table's length, as other readers of it do: qboot, microvm's firmware, leaves the count at 0.
void read_entries(Bytes table, MadtCpus& out) noexcept {
    std::uint8_t type = 0;
    for (std::size_t at = sizeof(ConfigurationTable); fetch(table, at, type);) {
        Processor processor{};
        const std::size_t size = type == kProcessor ? sizeof processor : kOtherBytes;
        if (type > kHighestType || size > table.size() - at) {
            out.error.set("MP table: the entry at offset %zu of %zu is %s (type %u)", at, table.size(),
                          type > kHighestType ? "of no known type" : "cut", type);
            return;
        }
        if (type == kProcessor && fetch(table, at, processor))
            add_cpu(ApicId{processor.apic_id}, (processor.flags & kEnabled) != 0, out);
        at += size;
    }
}

} // namespace

bool read_mp_table(const boot::PhysicalReader& reader, ApicId boot, MadtCpus& out) noexcept {
    out = {};
    out.ids[0] = boot;
    out.count = 1;
    const auto pointer = find_pointer(reader);
    if (!pointer)
        return false;
    if (pointer->default_configuration != 0) { // two CPUs and no table: chapter 5
        add_cpu(ApicId{0}, true, out);
        add_cpu(ApicId{1}, true, out);
        return true;
    }
    const std::uint64_t address = pointer->table;
    ConfigurationTable header{};
    const auto start = reader.read(address, sizeof header);
    if (!start || !fetch(*start, 0, header) || std::string_view(header.signature, 4) != "PCMP"sv ||
        header.length < sizeof header) {
        out.error.set("MP table: nothing that is one at 0x%llx", static_cast<unsigned long long>(address));
        return true;
    }
    const auto table = reader.read(address, header.length);
    if (!table || sum(*table) != 0) {
        out.error.set("MP table: its %u bytes at 0x%llx are not readable, or their checksum is wrong", header.length,
                      static_cast<unsigned long long>(address));
        return true;
    }
    out.lapic_address = header.lapic_address;
    read_entries(*table, out);
    return true;
}

} // namespace spinkick::x86
