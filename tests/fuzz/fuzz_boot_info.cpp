// SPDX-License-Identifier: BSD-2-Clause
//
// What a loader leaves in memory. Input: the memory at 0x10000, which begins with the start info of PVH or the
// information of multiboot2.
#include <algorithm>

#include "boot/multiboot2_info.hpp"
#include "boot/pvh_info.hpp"
#include "tests/fuzz/physical_memory.hpp"

namespace spinkick::fuzz {
namespace {

constexpr std::uint64_t kBase = 0x10000;

boot::PhysicalReader reader_of(PhysicalMemory& memory) {
    return {[](void* context, std::uint64_t address, std::size_t size) noexcept {
                return static_cast<PhysicalMemory*>(context)->read(address, size);
            },
            &memory};
}

using Read = bool (*)(std::uint64_t, const boot::PhysicalReader&, boot::BootInfo&, ErrorText&) noexcept;

void read_and_judge(Input input, Read read) {
    PhysicalMemory memory(kBase, input);
    const auto info = std::make_unique<boot::BootInfo>();
    ErrorText error;
    const bool good = read(kBase, reader_of(memory), *info, error);

    require(good == error.empty(), "an error has a text, and a text is an error");
    require(info->command_line_size < boot::BootInfo::kCommandLineBytes &&
                info->command_line[info->command_line_size] == '\0',
            "the command line ends in its space");
    require(info->command_line_view().find('\0') == std::string_view::npos, "and not before");
    require(info->module_count <= boot::BootInfo::kMostModules, "no more modules than there is room for");
    for (std::size_t i = 0; i < info->module_count; ++i)
        require(info->modules[i].base + info->modules[i].size >= info->modules[i].base, "a module does not wrap");
    require(info->rsdp_copy_size == 0 || info->rsdp_copy_size == 20 || info->rsdp_copy_size == 36, "an RSDP's size");

    const auto ranges = info->memory.ranges();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        require(ranges[i].size != 0 && ranges[i].end() > ranges[i].base, "a range is one");
        // What was added before an error stays as it came; a loader's whole map is sorted and without overlaps.
        if (good && i != 0)
            require(ranges[i - 1].end() <= ranges[i].base, "ranges are sorted and apart");
        if (good && ranges[i].type == boot::MemoryType::usable)
            require(info->memory.is_usable(ranges[i].base, ranges[i].size), "usable is usable");
    }
}

} // namespace

void pvh_info(Input input) {
    read_and_judge(input, boot::read_pvh_info);
    PhysicalMemory memory(kBase, input);
    (void)boot::read_pvh_flags(kBase, reader_of(memory));
}

void multiboot2_info(Input input) { read_and_judge(input, boot::read_multiboot2_info); }

} // namespace spinkick::fuzz
