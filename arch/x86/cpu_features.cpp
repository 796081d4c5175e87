// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/cpu_features.hpp"

#include <atomic>

#include "arch/x86/cpuid.hpp"

namespace spinkick::x86::cpu_features {
namespace {

constinit Values boot_values{};
constinit std::atomic<std::uint32_t> differing{0};
constinit Summary first_found{};

Values read() noexcept {
    Values values{};
    const auto basic = max_basic_leaf(), extended = max_extended_leaf();
    for (std::size_t i = 0; i < kWords.size(); ++i) {
        const auto& word = kWords[i];
        if (word.leaf > (word.leaf < 0x80000000 ? basic : extended))
            continue; // data of another leaf, or zeros
        const auto r = cpuid(word.leaf, word.subleaf);
        const std::array registers{r.eax, r.ebx, r.ecx, r.edx};
        values[i] = registers[static_cast<std::size_t>(word.from)] & word.mask;
    }
    return values;
}

} // namespace

void note_this_cpu(CpuId cpu) noexcept {
    const auto values = read();
    if (cpu == CpuId{0}) {
        boot_values = values; // before any AP runs
        return;
    }
    const auto found = difference(boot_values, values);
    // Only the first one writes; whoever reads has waited until all APs were online.
    if (found && differing.fetch_add(1, std::memory_order_relaxed) == 0)
        first_found = {0, cpu, *found};
}

Summary summary() noexcept {
    auto result = first_found;
    result.differing = differing.load(std::memory_order_relaxed);
    return result;
}

} // namespace spinkick::x86::cpu_features
