// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/smp.hpp"

#include <new>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/descriptors.hpp"
#include "arch/x86/insn.hpp"
#include "arch/x86/interrupts.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/machine_steps.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/rescue.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "kernel/clock.hpp"
#include "kernel/log.hpp"

extern "C" const char boot_stack[], boot_stack_top[], trampoline_begin[], trampoline_end[], trampoline_page[],
    trampoline_efer[], trampoline_gdt[], trampoline_gdt_base[], trampoline_far_offset[];

extern "C" {
constinit std::array<spinkick::x86::smp::ApEntry, spinkick::kMaxCpus> ap_entries{};
constinit std::uint32_t ap_entry_count = 0;
[[noreturn]] void ap_entry(std::uint32_t cpu) noexcept;
}

namespace spinkick::x86 {
namespace {

using paging::kPageBytes;

// One CPU's slice of the arena window, in pages. A page between two stacks is never mapped: running over an end is a
// #PF or a #DF on a stack of its own, not a neighbour's data.
constexpr std::uint64_t kSlotPages = 32;
struct Piece {
    std::uint64_t first, pages;
};
// The emergency stacks hold a whole report of a fault: registers, backtrace, and the formatting of each line.
constexpr Piece kMainStack{1, 4}, kNmiStack{6, 2}, kDoubleFaultStack{9, 3}, kMachineCheckStack{13, 3}, kBlock{17, 1},
    kScratch{19, 12}, kFlightRing{31, 1};
constexpr std::array kPieces = {kMainStack, kNmiStack, kDoubleFaultStack, kMachineCheckStack,
                                kBlock,     kScratch,  kFlightRing};

constexpr std::uint64_t mapped_pages() noexcept {
    std::uint64_t pages = 0;
    for (const auto& piece : kPieces)
        pages += piece.pages;
    return pages;
}

constinit PerCpu boot_block{};
constinit std::array<PerCpu*, kMaxCpus> blocks{&boot_block};
constinit std::atomic<std::uint32_t> online{1};

constexpr std::uint64_t slot_base(CpuId cpu) noexcept {
    return paging::kArenaBase + index(cpu) * kSlotPages * kPageBytes;
}
constexpr std::uint64_t top_of(CpuId cpu, Piece piece) noexcept {
    return slot_base(cpu) + (piece.first + piece.pages) * kPageBytes;
}

descriptors::IstStacks ist_stacks(CpuId cpu) noexcept {
    return {top_of(cpu, kNmiStack), top_of(cpu, kDoubleFaultStack), top_of(cpu, kMachineCheckStack)};
}

/// Offset of one of the trampoline's variables from its start.
std::size_t offset_of(const char* symbol) noexcept { return static_cast<std::size_t>(symbol - trampoline_begin); }

void put32(std::byte* page, const char* symbol, std::uint32_t value) noexcept {
    __builtin_memcpy(page + offset_of(symbol), &value, sizeof value);
}

bool has_arrived(std::uint32_t cpu) noexcept {
    // Acquire: what the AP set up before it said so is visible to whoever gives it work.
    return blocks[cpu]->online.load(std::memory_order_acquire);
}

bool wait_for_all(std::uint32_t count, Nanoseconds span) noexcept {
    const clock::Deadline deadline(span);
    for (std::uint32_t cpu = 1; cpu < count;) {
        if (has_arrived(cpu))
            ++cpu;
        else if (deadline.passed())
            return false;
        else
            pause();
    }
    return true;
}

std::atomic_ref<std::uint32_t> arrival_of(std::uint32_t cpu) noexcept {
    return std::atomic_ref(ap_entries[cpu].arrived);
}

/// Changes the state of an AP's arrival; false if it is another.
bool move(std::uint32_t cpu, smp::ArrivalState from, smp::ArrivalState to) noexcept {
    auto expected = static_cast<std::uint32_t>(from);
    // acq_rel: one side or the other has it, and what the AP did before is seen if it was the AP.
    return arrival_of(cpu).compare_exchange_strong(expected, static_cast<std::uint32_t>(to), std::memory_order_acq_rel);
}

/// Closes the door for those that are not there; one that has just come through it is waited for.
void give_up_missing(std::uint32_t count) noexcept {
    const clock::Deadline deadline(seconds(2));
    for (std::uint32_t cpu = 1; cpu < count; ++cpu)
        if (!move(cpu, smp::ArrivalState::awaited, smp::ArrivalState::given_up) &&
            arrival_of(cpu).load(std::memory_order_acquire) == static_cast<std::uint32_t>(smp::ArrivalState::arrived))
            while (!has_arrived(cpu) && !deadline.passed())
                pause();
}

/// INIT is asynchronous, on metal and in emulators.
void settle_init() noexcept {
    const clock::Deadline settle(milliseconds(10));
    while (!settle.passed())
        pause();
}

/// Copies the start code to a page below 1 MiB and tells it where that is.
void place_trampoline(std::byte* page, std::uint32_t base) noexcept {
    __builtin_memcpy(page, trampoline_begin, static_cast<std::size_t>(trampoline_end - trampoline_begin));
    put32(page, trampoline_page, base);
    put32(page, trampoline_gdt_base, base + static_cast<std::uint32_t>(offset_of(trampoline_gdt)));
    std::uint32_t far_offset = 0;
    __builtin_memcpy(&far_offset, page + offset_of(trampoline_far_offset), sizeof far_offset);
    put32(page, trampoline_far_offset, base + far_offset);
    put32(page, trampoline_efer, EFER_LME | (has_nx() ? EFER_NXE : 0));
}

} // namespace

PerCpu& percpu_of(CpuId cpu) noexcept { return *blocks[index(cpu)]; }

namespace smp {

void init_boot_cpu_block() noexcept {
    boot_block.self = &boot_block;
    boot_block.online.store(true, std::memory_order_relaxed); // nobody else runs yet
    if (xen_pv::is_active())
        xen_pv::set_gs_base(&boot_block);
    else
        wrmsr(Msr::IA32_GS_BASE, reinterpret_cast<std::uint64_t>(&boot_block));
}

std::uint64_t bytes_per_cpu() noexcept { return mapped_pages() * kPageBytes; }
std::uint64_t stack_top_of(CpuId cpu) noexcept { return top_of(cpu, kMainStack); }

std::span<std::byte> scratch_of(CpuId cpu) noexcept {
    return {reinterpret_cast<std::byte*>(slot_base(cpu) + kScratch.first * kPageBytes), kScratch.pages * kPageBytes};
}

std::uint32_t place_cpus(std::span<const ApicId> ids, std::uint64_t arena, std::uint64_t arena_bytes) noexcept {
    std::uint32_t placed = 0;
    for (const auto id : ids) {
        if (placed == kMaxCpus || arena_bytes < bytes_per_cpu())
            break;
        const CpuId cpu{placed};
        auto physical = arena;
        for (const auto& piece : kPieces)
            for (std::uint64_t i = 0; i < piece.pages; ++i, physical += kPageBytes)
                if (!paging::map_page(slot_base(cpu) + (piece.first + i) * kPageBytes, physical,
                                      paging::Access::read_write, paging::Cache::write_back))
                    return placed;
        arena += bytes_per_cpu();
        arena_bytes -= bytes_per_cpu();
        if (placed != 0) {
            auto* block = new (reinterpret_cast<void*>(slot_base(cpu) + kBlock.first * kPageBytes)) PerCpu{};
            block->self = block;
            blocks[placed] = block;
        }
        auto& block = *blocks[placed];
        block.cpu = cpu;
        block.apic_id = id;
        block.flight_ring =
            new (reinterpret_cast<void*>(slot_base(cpu) + kFlightRing.first * kPageBytes)) stress::FlightRing{};
        if (placed == 0) { // stays where it came in
            block.stack_low = reinterpret_cast<std::uint64_t>(boot_stack);
            block.stack_high = reinterpret_cast<std::uint64_t>(boot_stack_top);
        } else {
            block.stack_high = top_of(cpu, kMainStack);
            block.stack_low = block.stack_high - kMainStack.pages * kPageBytes;
        }
        ap_entries[placed] = {raw(id), placed, block.stack_high, 0, 0};
        ++placed;
    }
    ap_entry_count = placed;
    return placed;
}

void finish_boot_cpu() noexcept { descriptors::load_this_cpu(CpuId{0}, &boot_block, ist_stacks(CpuId{0})); }

BringUp start_all(std::uint32_t count, std::uint64_t trampoline_physical, StartMethod start,
                  std::uint32_t drop_starts) noexcept {
    BringUp result;
    result.found = count;
    const auto begin = clock::now();
    // The negative control: what is sent to the last CPU goes nowhere.
    const auto is_dropped = [&](std::uint32_t cpu) {
        return cpu == count - 1 && drop_starts != 0 && drop_starts-- != 0;
    };
    if (start != nullptr) {
        for (std::uint32_t cpu = 1; cpu < count; ++cpu)
            if (!is_dropped(cpu) && !start(CpuId{cpu}, blocks[cpu]->apic_id))
                log("smp: CPU %u could not be started by the hypervisor", cpu);
        (void)wait_for_all(count, seconds(5));
    } else if (count > 1 && trampoline_physical != 0) {
        auto* page = static_cast<std::byte*>(paging::map_physical(trampoline_physical, kPageBytes));
        if (page == nullptr)
            return result;
        static constinit std::array<std::byte, kPageBytes> saved{};
        __builtin_memcpy(saved.data(), page, kPageBytes); // the page may be the firmware's: it gets its content back
        place_trampoline(page, static_cast<std::uint32_t>(trampoline_physical));

        const auto vector = static_cast<std::uint8_t>(trampoline_physical / kPageBytes);
        const auto send_startup = [&](std::uint32_t cpu) {
            if (!is_dropped(cpu))
                lapic::send(blocks[cpu]->apic_id, lapic::Delivery::startup, vector);
        };
        for (std::uint32_t cpu = 1; cpu < count; ++cpu)
            lapic::send(blocks[cpu]->apic_id, lapic::Delivery::init, 0);
        settle_init();
        for (std::uint32_t cpu = 1; cpu < count; ++cpu)
            send_startup(cpu);
        // Then a SIPI alone: who is on the way ignores it.
        if (!wait_for_all(count, milliseconds(200 + 10 * count))) {
            for (std::uint32_t cpu = 1; cpu < count; ++cpu) {
                if (has_arrived(cpu))
                    continue;
                ++result.retried;
                send_startup(cpu);
            }
        }
        // And all of it, for an INIT that was lost. It must not meet a CPU that has just arrived.
        if (!wait_for_all(count, seconds(2))) {
            for (std::uint32_t cpu = 1; cpu < count; ++cpu)
                if (move(cpu, smp::ArrivalState::awaited, smp::ArrivalState::held))
                    lapic::send(blocks[cpu]->apic_id, lapic::Delivery::init, 0);
            settle_init();
            for (std::uint32_t cpu = 1; cpu < count; ++cpu)
                if (move(cpu, smp::ArrivalState::held, smp::ArrivalState::awaited))
                    send_startup(cpu);
            (void)wait_for_all(count, seconds(3));
        }
        give_up_missing(count);
        // A SIPI may still be under way to one that is missing: then the start code has to stay.
        bool all = true;
        for (std::uint32_t cpu = 1; cpu < count; ++cpu)
            all = all && has_arrived(cpu);
        if (all)
            __builtin_memcpy(page, saved.data(), kPageBytes);
    }
    give_up_missing(count);
    for (std::uint32_t cpu = 1; cpu < count; ++cpu) {
        if (has_arrived(cpu))
            continue;
        if (result.missing < result.missing_ids.size())
            result.missing_ids[result.missing] = blocks[cpu]->apic_id;
        ++result.missing;
    }
    result.online = online.load(std::memory_order_acquire);
    result.elapsed = clock::now() - begin;
    return result;
}

std::uint32_t placed_count() noexcept { return ap_entry_count; }

CpuId online_cpu(std::uint32_t n) noexcept {
    std::uint32_t seen = 0;
    for (std::uint32_t cpu = 0; cpu < ap_entry_count; ++cpu)
        if (has_arrived(cpu) && seen++ == n)
            return CpuId{cpu};
    return CpuId{0};
}

std::uint32_t online_count() noexcept { return online.load(std::memory_order_acquire); }

} // namespace smp
} // namespace spinkick::x86

extern "C" void ap_entry(std::uint32_t cpu) noexcept {
    using namespace spinkick;
    using namespace spinkick::x86;
    const CpuId id{cpu};
    if (!move(cpu, smp::ArrivalState::awaited, smp::ArrivalState::arrived))
        for (;;) { // nobody counts on this CPU any more, or an INIT will fetch it
            cli();
            hlt();
        }
    auto& block = percpu_of(id);
    descriptors::load_this_cpu(id, &block, ist_stacks(id));
    traps::load_this_cpu();
    if (!xen_pv::is_active())
        lapic::enable_this_cpu();
    machine_steps::init_this_cpu();
    block.online.store(true, std::memory_order_release);
    online.fetch_add(1, std::memory_order_release); // after the flag: whoever counts this CPU finds it
    machine_steps::idle_loop();
}
