// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/acpi_tables.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace spinkick::x86 {
namespace {

using namespace std::string_view_literals;

// Tables are packed and aligned to nothing; fields are copied out.

struct [[gnu::packed]] RsdpLayout {
    char signature[8];
    std::uint8_t checksum; // makes the first 20 bytes sum up to 0
    char oem_id[6];
    std::uint8_t revision; // 0: ACPI 1.0, ends after rsdt
    std::uint32_t rsdt;
    std::uint32_t length;
    std::uint64_t xsdt;
    std::uint8_t extended_checksum; // makes all of it sum up to 0
    std::uint8_t reserved[3];
};
static_assert(std::is_standard_layout_v<RsdpLayout> && sizeof(RsdpLayout) == 36);
static_assert(offsetof(RsdpLayout, revision) == 15 && offsetof(RsdpLayout, rsdt) == 16);
static_assert(offsetof(RsdpLayout, length) == 20 && offsetof(RsdpLayout, xsdt) == 24);
constexpr std::size_t kRsdpOldBytes = offsetof(RsdpLayout, length);

struct [[gnu::packed]] TableHeader {
    char signature[4];
    std::uint32_t length; // of the whole table
    std::uint8_t revision;
    std::uint8_t checksum; // makes the whole table sum up to 0
    char oem_id[6];
    char oem_table_id[8];
    std::uint32_t oem_revision;
    std::uint32_t creator_id;
    std::uint32_t creator_revision;
};
static_assert(std::is_standard_layout_v<TableHeader> && sizeof(TableHeader) == kTableHeaderBytes);
static_assert(offsetof(TableHeader, length) == 4);

struct [[gnu::packed]] MadtLayout {
    TableHeader header;
    std::uint32_t lapic_address;
    std::uint32_t flags;
};
static_assert(std::is_standard_layout_v<MadtLayout> && sizeof(MadtLayout) == 44);

struct [[gnu::packed]] EntryHeader {
    std::uint8_t type;
    std::uint8_t length; // with this header
};
static_assert(std::is_standard_layout_v<EntryHeader> && sizeof(EntryHeader) == 2);

enum class EntryType : std::uint8_t {
    local_apic = 0,
    local_apic_address = 5,
    local_x2apic = 9,
};

struct [[gnu::packed]] LocalApic {
    EntryHeader header;
    std::uint8_t acpi_id;
    std::uint8_t apic_id;
    std::uint32_t flags;
};
static_assert(std::is_standard_layout_v<LocalApic> && sizeof(LocalApic) == 8);

struct [[gnu::packed]] LocalApicAddress {
    EntryHeader header;
    std::uint16_t reserved;
    std::uint64_t address;
};
static_assert(std::is_standard_layout_v<LocalApicAddress> && sizeof(LocalApicAddress) == 12);

struct [[gnu::packed]] LocalX2apic {
    EntryHeader header;
    std::uint16_t reserved;
    std::uint32_t x2apic_id;
    std::uint32_t flags;
    std::uint32_t acpi_id;
};
static_assert(std::is_standard_layout_v<LocalX2apic> && sizeof(LocalX2apic) == 16);

constexpr std::uint32_t kEnabled = 1;
/// An entry without a CPU; also the broadcast address of its APIC mode.
constexpr std::uint32_t kNoApic = 0xff;
constexpr std::uint32_t kNoX2apic = 0xffffffff;

/// The part of the FADT that this kernel reads.
struct [[gnu::packed]] FadtLayout {
    TableHeader header;
    std::uint8_t before_pm_timer[40];
    std::uint32_t pm_timer_block;
    std::uint8_t before_pm_timer_length[11];
    std::uint8_t pm_timer_length;
    std::uint8_t before_flags[20];
    std::uint32_t flags;
};
static_assert(std::is_standard_layout_v<FadtLayout> && sizeof(FadtLayout) == 116);
static_assert(offsetof(FadtLayout, pm_timer_block) == 76 && offsetof(FadtLayout, pm_timer_length) == 91);
static_assert(offsetof(FadtLayout, flags) == 112);
constexpr std::uint32_t kTimer32Bits = 1u << 8;      // TMR_VAL_EXT
constexpr std::uint32_t kHardwareReduced = 1u << 20; // HW_REDUCED_ACPI

/// Generic Address Structure.
struct [[gnu::packed]] GenericAddress {
    std::uint8_t space; // 0 memory, 1 I/O
    std::uint8_t bit_width;
    std::uint8_t bit_offset;
    std::uint8_t access_size;
    std::uint64_t address;
};
static_assert(std::is_standard_layout_v<GenericAddress> && sizeof(GenericAddress) == 12);
constexpr std::size_t kXPmTimerOffset = 208;
constexpr std::uint8_t kIoSpace = 1;

/// True if the table is whole and its own: name, length and checksum. `name` is what it should be; empty: anything.
bool check_table(Bytes bytes, std::string_view name, ErrorText& error) noexcept {
    const auto length = table_length(bytes, error);
    if (!length)
        return false;
    const auto signature = table_signature(bytes);
    if (!name.empty() && std::string_view(signature.data(), 4) != name) {
        error.set("ACPI table %s: is in the place of %.*s", signature.data(), static_cast<int>(name.size()),
                  name.data());
        return false;
    }
    if (*length > bytes.size()) {
        error.set("ACPI table %s: length %u, only %zu bytes are readable", signature.data(), *length, bytes.size());
        return false;
    }
    if (const std::uint8_t rest = sum(bytes.first(*length)); rest != 0) {
        error.set("ACPI table %s: the checksum over %u bytes is off by 0x%02x", signature.data(), *length, rest);
        return false;
    }
    return true;
}

void read_entry(Bytes entry, const EntryHeader& header, std::size_t offset, MadtCpus& out) noexcept {
    bool whole = true;
    switch (static_cast<EntryType>(header.type)) {
    case EntryType::local_apic: {
        LocalApic apic{};
        whole = fetch(entry, 0, apic);
        if (whole && apic.apic_id != kNoApic)
            add_cpu(ApicId{apic.apic_id}, (apic.flags & kEnabled) != 0, out);
        break;
    }
    case EntryType::local_x2apic: {
        LocalX2apic apic{};
        whole = fetch(entry, 0, apic);
        if (whole && apic.x2apic_id != kNoX2apic)
            add_cpu(ApicId{apic.x2apic_id}, (apic.flags & kEnabled) != 0, out);
        break;
    }
    case EntryType::local_apic_address: {
        LocalApicAddress address{};
        whole = fetch(entry, 0, address);
        if (whole)
            out.lapic_address = address.address;
        break;
    }
    default: // I/O APICs, interrupt overrides, NMI lines
        break;
    }
    if (!whole)
        out.error.set_first("ACPI table APIC: entry of type %u at offset %zu has the length %u, too short", header.type,
                            offset, header.length);
}

} // namespace

void add_cpu(ApicId id, bool enabled, MadtCpus& out) noexcept {
    if (!enabled) {
        ++out.disabled;
        return;
    }
    const ApicId boot = out.ids[0];
    if (id == boot && !out.boot_cpu_listed) {
        out.boot_cpu_listed = true;
        ++out.found;
        return;
    }
    if (std::find(out.ids.begin(), out.ids.begin() + out.count, id) != out.ids.begin() + out.count) {
        ++out.duplicates;
        return;
    }
    ++out.found;
    if (out.count == out.ids.size())
        ++out.over_limit;
    else
        out.ids[out.count++] = id;
}

Rsdp parse_rsdp(Bytes bytes) noexcept {
    Rsdp result;
    RsdpLayout layout{};
    if (bytes.size() < kRsdpOldBytes) {
        result.error.set("RSDP: only %zu bytes, needs %zu", bytes.size(), kRsdpOldBytes);
        return result;
    }
    std::memcpy(&layout, bytes.data(), std::min(bytes.size(), sizeof layout));
    if (std::string_view(layout.signature, sizeof layout.signature) != "RSD PTR "sv) {
        result.error.set("RSDP: no signature \"RSD PTR \"");
        return result;
    }
    if (const std::uint8_t rest = sum(bytes.first(kRsdpOldBytes)); rest != 0) {
        result.error.set("RSDP: the checksum over 20 bytes is off by 0x%02x", rest);
        return result;
    }
    result.revision = layout.revision;
    result.rsdt = layout.rsdt;
    if (layout.revision >= 2) {
        const std::uint32_t length = layout.length;
        if (bytes.size() < sizeof layout)
            result.error.set("RSDP: revision %u, but only %zu bytes", layout.revision, bytes.size());
        else if (length < sizeof layout || length > bytes.size())
            result.error.set("RSDP: length %u, %zu bytes are readable", length, bytes.size());
        else if (const std::uint8_t rest = sum(bytes.first(length)); rest != 0)
            result.error.set("RSDP: the checksum over %u bytes is off by 0x%02x", length, rest);
        else
            result.xsdt = layout.xsdt;
    }
    if (!result.usable())
        result.error.set_first("RSDP: has neither an RSDT nor an XSDT");
    return result;
}

std::optional<std::uint32_t> table_length(Bytes header, ErrorText& error) noexcept {
    TableHeader layout{};
    if (!fetch(header, 0, layout)) {
        error.set("ACPI table: only %zu bytes, its header has %zu", header.size(), kTableHeaderBytes);
        return std::nullopt;
    }
    const std::uint32_t length = layout.length;
    if (length < kTableHeaderBytes || length > kLongestTable) {
        error.set("ACPI table %s: length %u is outside %zu..%u", table_signature(header).data(), length,
                  kTableHeaderBytes, kLongestTable);
        return std::nullopt;
    }
    return length;
}

std::array<char, 5> table_signature(Bytes header) noexcept {
    std::array<char, 5> signature{'?', '?', '?', '?', '\0'};
    if (header.size() >= 4)
        std::memcpy(signature.data(), header.data(), 4);
    replace_control_characters({signature.data(), 4});
    return signature;
}

RootTable RootTable::parse(Bytes bytes, Kind kind, ErrorText& error) noexcept {
    RootTable table;
    const bool wide = kind == Kind::xsdt;
    if (!check_table(bytes, {}, error))
        return table;
    table.misnamed_ = std::string_view(table_signature(bytes).data(), 4) != (wide ? "XSDT"sv : "RSDT"sv);
    TableHeader header{};
    (void)fetch(bytes, 0, header); // checked above
    table.entry_bytes_ = wide ? 8 : 4;
    table.entries_ = bytes.subspan(kTableHeaderBytes, header.length - kTableHeaderBytes);
    if (const std::size_t odd = table.entries_.size() % table.entry_bytes_; odd != 0)
        error.set("ACPI table %s: %zu bytes behind its last address", table_signature(bytes).data(), odd);
    return table;
}

std::uint64_t RootTable::entry(std::size_t i) const noexcept {
    if (i >= size())
        return 0;
    if (entry_bytes_ == 8) {
        std::uint64_t wide = 0;
        (void)fetch(entries_, i * 8, wide);
        return wide;
    }
    std::uint32_t narrow = 0;
    (void)fetch(entries_, i * 4, narrow);
    return narrow;
}

void parse_madt(Bytes bytes, ApicId boot, MadtCpus& out) noexcept {
    out = {};
    out.ids[0] = boot;
    out.count = 1;
    if (!check_table(bytes, "APIC"sv, out.error))
        return;
    MadtLayout layout{};
    if (!fetch(bytes, 0, layout) || layout.header.length < sizeof layout) {
        out.error.set("ACPI table APIC: length %zu, needs %zu", bytes.size(), sizeof layout);
        return;
    }
    out.lapic_address = layout.lapic_address;

    const Bytes table = bytes.first(layout.header.length);
    std::size_t offset = sizeof layout;
    while (offset < table.size()) {
        EntryHeader header{};
        if (!fetch(table, offset, header)) {
            out.error.set_first("ACPI table APIC: ends inside the entry at offset %zu", offset);
            return;
        }
        if (header.length < sizeof header) { // also 0, on which a walk would stand still
            out.error.set_first("ACPI table APIC: entry of type %u at offset %zu has the length %u", header.type,
                                offset, header.length);
            return;
        }
        if (header.length > table.size() - offset) {
            out.error.set_first("ACPI table APIC: entry of type %u at offset %zu has the length %u, %zu are left",
                                header.type, offset, header.length, table.size() - offset);
            return;
        }
        read_entry(table.subspan(offset, header.length), header, offset, out);
        offset += header.length;
    }
}

PmTimer parse_fadt(Bytes bytes) noexcept {
    PmTimer timer;
    if (!check_table(bytes, "FACP"sv, timer.error))
        return timer;
    FadtLayout layout{};
    TableHeader header{};
    (void)fetch(bytes, 0, header); // checked above
    const Bytes table = bytes.first(header.length);
    if (!fetch(table, 0, layout)) {
        timer.error.set("ACPI table FACP: length %zu, needs %zu", table.size(), sizeof layout);
        return timer;
    }
    if ((layout.flags & kHardwareReduced) != 0)
        return timer;
    std::uint64_t port = layout.pm_timer_length == 4 ? layout.pm_timer_block : 0;
    if (GenericAddress extended{}; fetch(table, kXPmTimerOffset, extended) && extended.address != 0) {
        if (extended.space != kIoSpace)
            return timer; // memory-mapped: not for this kernel
        port = extended.address;
    }
    if (port > 0xffff) {
        timer.error.set("ACPI table FACP: PM timer at port 0x%llx", static_cast<unsigned long long>(port));
        return timer;
    }
    timer.port = static_cast<std::uint16_t>(port);
    timer.is_32_bits = port != 0 && (layout.flags & kTimer32Bits) != 0;
    return timer;
}

} // namespace spinkick::x86
