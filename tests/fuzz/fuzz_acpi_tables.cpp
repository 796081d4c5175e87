// SPDX-License-Identifier: BSD-2-Clause
//
// The whole walk: RSDP, root table, every table it names; or, without them, the MP table. Input: a byte of choices
// (below), the boot CPU's APIC id, and the memory at 0xe0000, which begins with the RSDP.
#include <cstring>
#include <set>

#include "arch/x86/acpi.hpp"
#include "arch/x86/paging.hpp"
#include "tests/fuzz/physical_memory.hpp"
#include "tests/host/console_capture.hpp"

namespace spinkick::fuzz {
namespace {

constexpr std::uint64_t kBase = 0xe0000; // the BIOS area, so that a search finds what an address would
constexpr std::size_t kBiosAreaBytes = 0x20000;

constexpr unsigned kMendChecksums = 1; // a mutation would hardly ever get beyond them
constexpr unsigned kSearchBiosArea = 2;
constexpr unsigned kCopyOfRsdp = 4;
constexpr unsigned kMpTable = 8; // the memory is at 0xf0000, begins with the MP floating pointer, and there is no ACPI

constexpr std::uint64_t kRom = 0xf0000;
constexpr std::size_t kRomBytes = 0x10000;

/// Lines that one set of tables may cost: on a serial line under an emulated hypervisor a line is some 20 ms.
constexpr std::size_t kMostLines = 40;

PhysicalMemory* memory = nullptr;

template <class T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
    T value{};
    if (offset <= bytes.size() && bytes.size() - offset >= sizeof value)
        std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

void mend(std::span<std::byte> bytes, std::size_t at) {
    if (at >= bytes.size())
        return;
    bytes[at] = std::byte{0};
    unsigned sum = 0;
    for (const std::byte b : bytes)
        sum += static_cast<unsigned>(b);
    bytes[at] = static_cast<std::byte>(0u - sum);
}

/// Returns the table, if it lies in memory.
std::span<std::byte> mend_table(std::uint64_t address) {
    const auto header = memory->part(address, x86::kTableHeaderBytes);
    if (!header)
        return {};
    const auto table = memory->part(address, load<std::uint32_t>(*header, 4));
    if (!table || table->size() < x86::kTableHeaderBytes)
        return {};
    mend(*table, 9);
    return *table;
}

void mend_all() {
    const auto bytes = memory->bytes();
    if (bytes.size() < 20)
        return;
    mend(bytes.first(20), 8);
    const bool wide = load<std::uint8_t>(bytes, 15) >= 2 && bytes.size() >= 36;
    if (const auto length = load<std::uint32_t>(bytes, 20); wide && length >= 36 && length <= bytes.size())
        mend(bytes.first(length), 32);
    const auto xsdt = wide ? load<std::uint64_t>(bytes, 24) : 0;
    const auto root = mend_table(xsdt != 0 ? xsdt : load<std::uint32_t>(bytes, 16));
    const std::size_t step = xsdt != 0 ? 8 : 4;
    for (std::size_t at = x86::kTableHeaderBytes; at + step <= root.size(); at += step)
        (void)mend_table(xsdt != 0 ? load<std::uint64_t>(root, at) : load<std::uint32_t>(root, at));
    if (!root.empty())
        mend(root, 9); // a table may overlap it
}

void mend_mp_table() {
    const auto bytes = memory->bytes();
    if (bytes.size() < 16)
        return;
    mend(bytes.first(16), 10);
    const auto address = load<std::uint32_t>(bytes, 4);
    const auto header = memory->part(address, 44);
    if (!header)
        return;
    if (const auto table = memory->part(address, load<std::uint16_t>(*header, 4)); table && table->size() >= 44)
        mend(*table, 7);
}

} // namespace

void acpi_tables(Input input) {
    const unsigned choices = take_byte(input);
    const ApicId boot{take_byte(input)};
    const bool is_mp_table = (choices & kMpTable) != 0;
    PhysicalMemory physical(is_mp_table ? kRom : kBase, input);
    memory = &physical;
    if ((choices & kMendChecksums) != 0)
        is_mp_table ? mend_mp_table() : mend_all();

    const auto info = std::make_unique<boot::BootInfo>();
    if (is_mp_table) {
        physical.pad_to(kRomBytes);
    } else if ((choices & kCopyOfRsdp) != 0) {
        const std::size_t size = physical.bytes().size() < info->rsdp_copy.size() ? 20 : info->rsdp_copy.size();
        if (physical.bytes().size() >= size) {
            std::copy_n(physical.bytes().begin(), size, info->rsdp_copy.begin());
            info->rsdp_copy_size = size;
        }
    } else if ((choices & kSearchBiosArea) != 0) {
        physical.pad_to(kBiosAreaBytes);
    } else {
        info->rsdp_paddr = kBase;
    }

    const auto tables = std::make_unique<x86::acpi::Tables>();
    x86::acpi::read(*info, boot, *tables);
    memory = nullptr;

    const auto& madt = tables->madt;
    require(madt.count >= 1 && madt.count <= kMaxCpus, "the boot CPU and no more than there is room for");
    require(madt.ids[0] == boot, "the boot CPU is the first");
    require(std::set(madt.cpus().begin(), madt.cpus().end()).size() == madt.count, "no CPU twice");
    require((tables->damaged != 0) == !tables->first_damage.empty(), "damage is named");
    const auto lines = test::take_console_lines();
    require(lines.size() <= kMostLines, "few lines, however many tables are bad");
    for (const auto& line : lines)
        require(line.find_first_of("\n\r\x1b") == std::string::npos, "a table's text starts no line of its own");
}

} // namespace spinkick::fuzz

namespace spinkick::x86 {

void* paging::map_physical(std::uint64_t physical, std::size_t bytes, Cache) noexcept {
    if (bytes == 0)
        return nullptr;
    const auto part = fuzz::memory->read(physical, bytes);
    return part ? const_cast<std::byte*>(part->data()) : nullptr;
}

} // namespace spinkick::x86
