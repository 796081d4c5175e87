// SPDX-License-Identifier: BSD-2-Clause
#include "boot/pvh_info.hpp"

#include <cstring>
#include <limits>
#include <type_traits>

namespace spinkick::boot {
namespace {

constexpr std::uint32_t kMagic = 0x336ec578; // "xEn3" with bit 7 of the E set

struct StartInfo {
    std::uint32_t magic;
    std::uint32_t version;
    std::uint32_t flags;
    std::uint32_t nr_modules;
    std::uint64_t modlist_paddr;
    std::uint64_t cmdline_paddr;
    std::uint64_t rsdp_paddr;
    // From version 1 on:
    std::uint64_t memmap_paddr;
    std::uint32_t memmap_entries;
    std::uint32_t reserved;
};
static_assert(std::is_standard_layout_v<StartInfo> && sizeof(StartInfo) == 56);
static_assert(offsetof(StartInfo, modlist_paddr) == 16 && offsetof(StartInfo, cmdline_paddr) == 24);
static_assert(offsetof(StartInfo, rsdp_paddr) == 32 && offsetof(StartInfo, memmap_paddr) == 40);
static_assert(offsetof(StartInfo, memmap_entries) == 48);
constexpr std::size_t kVersion0Bytes = offsetof(StartInfo, memmap_paddr);

struct Module {
    std::uint64_t paddr;
    std::uint64_t size;
    std::uint64_t cmdline_paddr;
    std::uint64_t reserved;
};
static_assert(std::is_standard_layout_v<Module> && sizeof(Module) == 32);

struct MemmapEntry {
    std::uint64_t addr;
    std::uint64_t size;
    std::uint32_t type; // as E820
    std::uint32_t reserved;
};
static_assert(std::is_standard_layout_v<MemmapEntry> && sizeof(MemmapEntry) == 24);

/// No machine has as many; a count beyond it is not a count.
constexpr std::uint32_t kMostEntries = 4096;

/// Copies the first `size` bytes of a T.
template <class T>
bool fetch(const PhysicalReader& reader, std::uint64_t address, T& out, std::size_t size = sizeof(T)) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    if (address > std::numeric_limits<std::uint64_t>::max() - size)
        return false;
    const auto bytes = reader.read(address, size);
    if (!bytes || bytes->size() < size)
        return false;
    std::memcpy(&out, bytes->data(), size);
    return true;
}

bool read_modules(const StartInfo& info, const PhysicalReader& reader, BootInfo& out, ErrorText& error) noexcept {
    if (info.nr_modules > BootInfo::kMostModules) {
        error.set("start info: %u modules, at most %zu are kept", info.nr_modules, BootInfo::kMostModules);
        return false;
    }
    for (std::uint32_t i = 0; i < info.nr_modules; ++i) {
        Module module{};
        if (!fetch(reader, info.modlist_paddr + i * sizeof(Module), module)) {
            error.set("start info: module %u of %u at 0x%llx is not readable", i, info.nr_modules,
                      static_cast<unsigned long long>(info.modlist_paddr + i * sizeof(Module)));
            return false;
        }
        if (module.size > std::numeric_limits<std::uint64_t>::max() - module.paddr) {
            error.set("start info: module %u at 0x%llx has the size 0x%llx", i,
                      static_cast<unsigned long long>(module.paddr), static_cast<unsigned long long>(module.size));
            return false;
        }
        out.modules[out.module_count++] = {module.paddr, module.size};
    }
    return true;
}

bool read_memory_map(const StartInfo& info, const PhysicalReader& reader, BootInfo& out, ErrorText& error) noexcept {
    if (info.memmap_paddr == 0)
        return true;
    if (info.memmap_entries > kMostEntries) {
        error.set("start info: a memory map of %u entries, at most %u are believed", info.memmap_entries, kMostEntries);
        return false;
    }
    for (std::uint32_t i = 0; i < info.memmap_entries; ++i) {
        MemmapEntry entry{};
        if (!fetch(reader, info.memmap_paddr + i * sizeof(MemmapEntry), entry)) {
            error.set("start info: entry %u of %u of the memory map at 0x%llx is not readable", i, info.memmap_entries,
                      static_cast<unsigned long long>(info.memmap_paddr + i * sizeof(MemmapEntry)));
            return false;
        }
        out.memory.add(entry.addr, entry.size, memory_type_of_e820(entry.type));
    }
    out.memory.clean();
    return true;
}

} // namespace

bool read_pvh_info(std::uint64_t address, const PhysicalReader& reader, BootInfo& out, ErrorText& error) noexcept {
    out.protocol = Protocol::pvh;
    StartInfo info{};
    if (!fetch(reader, address, info, kVersion0Bytes)) {
        error.set("start info at 0x%llx is not readable", static_cast<unsigned long long>(address));
        return false;
    }
    if (info.magic != kMagic) {
        error.set("start info at 0x%llx: magic 0x%08x, must be 0x%08x", static_cast<unsigned long long>(address),
                  info.magic, kMagic);
        return false;
    }
    if (info.version >= 1 && !fetch(reader, address, info)) {
        error.set("start info at 0x%llx: version %u, but only %zu bytes are readable",
                  static_cast<unsigned long long>(address), info.version, kVersion0Bytes);
        return false;
    }
    out.rsdp_paddr = info.rsdp_paddr;
    if (info.cmdline_paddr != 0 && !read_command_line(info.cmdline_paddr, reader, out, error))
        return false;
    return read_modules(info, reader, out, error) && read_memory_map(info, reader, out, error);
}

std::uint32_t read_pvh_flags(std::uint64_t address, const PhysicalReader& reader) noexcept {
    StartInfo info{};
    return fetch(reader, address, info, kVersion0Bytes) && info.magic == kMagic ? info.flags : 0;
}

} // namespace spinkick::boot
