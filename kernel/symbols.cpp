// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/symbols.hpp"

#include "boot/layout.h"

namespace spinkick {

/// As symbols.awk writes it: sorted by offset; names are offsets into symbol_names.
struct SymbolEntry {
    std::uint32_t offset; ///< from KERNEL_BASE
    std::uint32_t name;
};
static_assert(sizeof(SymbolEntry) == 8, "symbols.awk writes two .long");

extern "C" const SymbolEntry symbol_table[], symbol_table_end[];
extern "C" const char symbol_names[], text_end[];

Symbol symbol_of(std::uint64_t address) noexcept {
    if (address < KERNEL_BASE || address >= reinterpret_cast<std::uint64_t>(text_end))
        return {};
    const auto offset = static_cast<std::uint32_t>(address - KERNEL_BASE);
    const SymbolEntry* found = nullptr;
    for (const auto* entry = symbol_table; entry != symbol_table_end && entry->offset <= offset; ++entry)
        found = entry;
    if (found == nullptr)
        return {};
    return {symbol_names + found->name, offset - found->offset};
}

} // namespace spinkick
