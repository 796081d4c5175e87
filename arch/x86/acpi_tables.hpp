// SPDX-License-Identifier: BSD-2-Clause
//
// The ACPI tables that this kernel needs, read from bytes (ACPI Specification 6.4, section 5.2): RSDP, RSDT or XSDT,
// MADT, FADT. Nothing here touches the machine: arch/x86/acpi.cpp maps the memory. Tables are input like any other: a
// bad one is an error text and a result that can be used without it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernel/bytes.hpp"
#include "kernel/text.hpp"
#include "kernel/types.hpp"

namespace spinkick::x86 {

/// Bytes of a table's header; a mapping of so many suffices to ask table_length().
inline constexpr std::size_t kTableHeaderBytes = 36;
/// Longer is no table: a MADT with 4,096 CPUs has 64 KiB, a DSDT is not read here.
inline constexpr std::uint32_t kLongestTable = 1u << 20;

struct Rsdp {
    std::uint32_t rsdt = 0; ///< physical address; 0: none
    std::uint64_t xsdt = 0; ///< physical address; 0: none. Preferred
    std::uint8_t revision = 0;
    ErrorText error; ///< with an address beside it: only the part of ACPI 2.0 is bad, the RSDT can be used

    [[nodiscard]] constexpr bool usable() const noexcept { return rsdt != 0 || xsdt != 0; }
};

/// Reads the 20 bytes of ACPI 1.0 or the 36 of ACPI 2.0.
[[nodiscard]] Rsdp parse_rsdp(Bytes bytes) noexcept;

/// The length that the header of a table claims, so that the rest can be mapped. Nothing, with an error, if the header
/// is cut or the length is no length.
[[nodiscard]] std::optional<std::uint32_t> table_length(Bytes header, ErrorText& error) noexcept;
/// The four characters of a table's name, with '?' for what cannot be printed.
[[nodiscard]] std::array<char, 5> table_signature(Bytes header) noexcept;

/// An RSDT or XSDT: a row of addresses of tables.
class RootTable {
  public:
    /// Which pointer of the RSDP led here: that decides the width of the entries, not the table's name.
    enum class Kind : std::uint8_t { rsdt, xsdt };
    /// `bytes` is the whole table. After an error its entries are what can be believed, mostly none. A wrong name under
    /// a right checksum is no error: Xen 4.17 builds a PVH dom0's XSDT from the host's, and on a host whose RSDP has
    /// none it copies the first bytes of physical memory in its place.
    [[nodiscard]] static RootTable parse(Bytes bytes, Kind kind, ErrorText& error) noexcept;
    [[nodiscard]] constexpr bool misnamed() const noexcept { return misnamed_; }

    [[nodiscard]] constexpr std::size_t size() const noexcept { return entries_.size() / entry_bytes_; }
    /// Physical address of table `i` < size(); may be 0, which is none.
    [[nodiscard]] std::uint64_t entry(std::size_t i) const noexcept;

  private:
    Bytes entries_;
    std::size_t entry_bytes_ = 8;
    bool misnamed_ = false;
};

/// The CPUs of a machine as its MADT lists them, each once, the boot CPU first.
struct MadtCpus {
    std::array<ApicId, kMaxCpus> ids{}; ///< index is the CpuId
    std::uint32_t count = 0;            ///< entries of `ids`; at least 1, the boot CPU
    std::uint32_t found = 0;            ///< enabled CPUs, without duplicates; more than count if over_limit
    std::uint32_t disabled = 0;         ///< entries without the enabled flag: room for hot-plug
    std::uint32_t duplicates = 0;       ///< entries of a CPU that had one already
    std::uint32_t over_limit = 0;       ///< CPUs beyond kMaxCpus; not started. Duplicates among them are not noticed
    bool boot_cpu_listed = false;
    std::uint64_t lapic_address = 0; ///< 0: not told
    ErrorText error;                 ///< what was read before the fault stays above

    [[nodiscard]] constexpr std::span<const ApicId> cpus() const noexcept { return {ids.data(), count}; }
};

/// Adds the CPU of one entry, if it is enabled and was not there before. `out` has the boot CPU already.
void add_cpu(ApicId id, bool enabled, MadtCpus& out) noexcept;

/// `bytes` is the whole table; `boot` is the APIC id of the CPU that runs this. A table whose length or checksum is
/// wrong gives the boot CPU alone.
void parse_madt(Bytes bytes, ApicId boot, MadtCpus& out) noexcept;

struct PmTimer {
    std::uint16_t port = 0; ///< 0: there is none at an I/O port
    bool is_32_bits = false;
    ErrorText error;
};

/// From the FADT.
[[nodiscard]] PmTimer parse_fadt(Bytes bytes) noexcept;

} // namespace spinkick::x86
