// SPDX-License-Identifier: BSD-2-Clause
#include "tools/host_table.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/units.hpp"
#include "tools/workload.hpp"

namespace spinkick::report {
namespace {

struct HostField {
    const char* key;
    std::uint64_t HostRow::*sum;
};
/// A kernel may lack one; the first one is in all.
constexpr std::array kHostFields{
    HostField{"host_halt_exits", &HostRow::halt_exits},
    HostField{"host_halt_wakeup", &HostRow::halt_wakeup},
    HostField{"host_halt_attempted_poll", &HostRow::halt_attempted_poll},
    HostField{"host_halt_successful_poll", &HostRow::halt_successful_poll},
    HostField{"host_directed_yield_attempted", &HostRow::directed_yield_attempted},
    HostField{"host_directed_yield_successful", &HostRow::directed_yield_successful},
    HostField{"host_preemption_reported", &HostRow::preemption_reported},
    HostField{"host_irq_injections", &HostRow::irq_injections},
    HostField{"host_exits", &HostRow::exits},
    HostField{"halts", &HostRow::halts},
    HostField{"kvm_kick_cpu", &HostRow::kicks_and_yields},
    HostField{"kvm_sched_yield", &HostRow::kicks_and_yields},
};

std::string signed_count(std::uint64_t host, std::uint64_t guest) {
    return host < guest ? fmt::format("-{}", guest - host) : fmt::format("+{}", host - guest);
}

} // namespace

HostTable host_table(const Results& results) {
    HostTable table;
    Places places(results);
    std::size_t without = 0;
    for (const Json& record : results.records) {
        if (!is_type(record, "bench"))
            continue;
        const Place place = places.of(record);
        if (!number_in(record, kHostFields[0].key)) {
            ++without;
            continue;
        }
        auto block = std::find_if(table.blocks.begin(), table.blocks.end(),
                                  [&](const HostBlock& b) { return b.place == place; });
        if (block == table.blocks.end())
            block = table.blocks.insert(table.blocks.end(), HostBlock{place, {}});
        const std::string lock = lock_name(text_in(record, "lock"), text_in(record, "backend"));
        auto row =
            std::find_if(block->rows.begin(), block->rows.end(), [&](const HostRow& r) { return r.lock == lock; });
        if (row == block->rows.end()) {
            row = block->rows.insert(block->rows.end(), HostRow{});
            row->lock = lock;
        }
        for (const HostField& field : kHostFields)
            (*row).*field.sum += number_in(record, field.key).value_or(0);
    }
    if (table.blocks.empty())
        table.problems.emplace_back("no counters of a host: run-qemu.sh --on nested-kvm --host-counters");
    else if (without != 0)
        table.problems.push_back(fmt::format("{} measurements have no counters of the host", without));
    return table;
}

std::string text_of(const HostTable& table) {
    std::string out;
    for (const HostBlock& block : table.blocks) {
        TextTable lines({"lock/back end", "halts", "halt_exits", "idle", "kicks+yields", "yields tried", "differ",
                         "succeeded", "wake-ups", "polls", "hits", "preempted", "irqs", "exits", ""},
                        1);
        for (const HostRow& row : block.rows)
            lines.add({printable(row.lock), std::to_string(row.halts), std::to_string(row.halt_exits),
                       signed_count(row.halt_exits, row.halts), std::to_string(row.kicks_and_yields),
                       std::to_string(row.directed_yield_attempted),
                       signed_count(row.directed_yield_attempted, row.kicks_and_yields),
                       std::to_string(row.directed_yield_successful), std::to_string(row.halt_wakeup),
                       std::to_string(row.halt_attempted_poll), std::to_string(row.halt_successful_poll),
                       std::to_string(row.preemption_reported), human_count(static_cast<double>(row.irq_injections)),
                       human_count(static_cast<double>(row.exits)), ""});
        out += fmt::format("{}: counted by the guest and by KVM\n{}\n", block_text(block.place), lines.text());
    }
    if (!table.blocks.empty())
        out +=
            "  Sums over the repetitions, each between two sync points. halts, kicks+yields (KVM_HC_KICK_CPU and\n"
            "  SCHED_YIELD): the guest's. All others are KVM's: halt_exits, of which the locks' waits made halts and\n"
            "  idle vCPUs the rest; yields tried: directed_yield_attempted, one for each kick and each yield, so\n"
            "  that differ is 0; pause loops are not in it. wake-ups: halt_wakeup; polls, hits: halt_attempted_poll,\n"
            "  halt_successful_poll; preempted: preemption_reported; irqs: irq_injections.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
