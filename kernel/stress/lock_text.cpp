// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/lock_text.hpp"

#include <array>

#include "kernel/log.hpp"
#include "kernel/sync/lock_word.hpp"

namespace spinkick::stress {
namespace {

unsigned long long address(const void* lock) noexcept {
    return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(lock));
}

unsigned bits(std::uint64_t word, unsigned low, unsigned count) noexcept {
    return static_cast<unsigned>(word >> low & ((std::uint64_t{1} << count) - 1));
}

} // namespace

void describe_word(TextBuffer& out, sync::WordLayout layout, std::uint64_t word) noexcept {
    using sync::WordLayout;
    switch (layout) {
    case WordLayout::flag:
        format(out, "%s", word != 0 ? "held" : "free");
        break;
    case WordLayout::owner:
        format(out, "%s", bits(word, 0, 8) != 0 ? "held" : "free");
        if (const auto owner = bits(word, 32, 32); owner != 0)
            format(out, ", owner CPU %u", owner - 1);
        break;
    case WordLayout::spinners:
        format(out, "%s, %u waiters sleep or are about to", bits(word, 0, 8) != 0 ? "held" : "free",
               bits(word, 16, 16));
        break;
    case WordLayout::ticket:
    case WordLayout::pv_ticket: {
        const unsigned step = layout == WordLayout::pv_ticket ? 2 : 1;
        const auto head = bits(word, 0, 16) & ~(step - 1), tail = bits(word, 16, 16);
        format(out, "serves %u, next number %u: %u hold or wait", head, tail, ((tail - head) & 0xffff) / step);
        if (step == 2 && (word & 1) != 0)
            format(out, ", somebody sleeps");
        break;
    }
    case WordLayout::queued: {
        using namespace sync::queued_word;
        const auto locked = word & kLockedMask;
        format(out, "%s", locked == 0 ? "free" : locked == kLocked ? "held" : "held, and the queue head sleeps");
        if ((word & kPendingMask) != 0)
            format(out, ", pending");
        if (const auto tail = bits(word, kTailShift, 16); tail != 0)
            format(out, ", tail CPU %u node %u", (tail >> 2) - 1, tail & 3);
        else
            format(out, ", nobody queues");
        break;
    }
    }
}

void log_lock(const void* lock, const LockKind& kind) noexcept {
    const auto word = kind.word(lock);
    std::array<char, 128> storage{};
    TextBuffer text(storage);
    if (kind.layout)
        describe_word(text, *kind.layout, word);
    log("#   lock %s/%s at 0x%llx: word 0x%llx %s", kind.name, kind.backend, address(lock),
        static_cast<unsigned long long>(word), text.c_str());
}

void log_claims(CpuId cpu, std::uint32_t cpu_bound) noexcept {
    const auto& claims = lock_tracking.of(cpu);
    for (std::uint32_t n = 0; n < claims.count(); ++n) {
        const auto claim = claims.at(n);
        if (claim.lock == nullptr)
            continue;
        if (claim.held) {
            log("#          holds %s/%s at 0x%llx", claim.kind->name, claim.kind->backend, address(claim.lock));
            continue;
        }
        std::array<char, 96> storage{};
        TextBuffer text(storage);
        if (const auto holder = lock_tracking.holder_of(claim.lock, cpu_bound))
            format(text, ", held by CPU %u", raw(*holder));
        else
            format(text, ", which nobody holds");
        if (claim.kind->waiter != nullptr)
            if (const auto view = claim.kind->waiter(cpu); view.queued) {
                format(text, "; %u ahead in the queue", view.ahead);
                if (view.ahead != 0)
                    format(text, " (CPU %u before it)", raw(view.behind));
                format(text, ", node %s", view.state);
            }
        log("#          waits for %s/%s at 0x%llx%s", claim.kind->name, claim.kind->backend, address(claim.lock),
            text.c_str());
    }
}

void log_cycle(CpuId cpu, std::uint32_t cpu_bound) noexcept {
    std::array<CpuId, 16> cycle{};
    const auto length = lock_tracking.cycle_from(cpu, cpu_bound, cycle);
    if (length == 0)
        return;
    std::array<char, 400> storage{};
    TextBuffer text(storage);
    for (std::size_t i = 0; i < length; ++i) {
        const auto claim = lock_tracking.of(cycle[i]).waits_for();
        if (!claim)
            return; // it went on
        format(text, "%sCPU %u waits for %s/%s at 0x%llx held by CPU %u", i == 0 ? "" : "; ", raw(cycle[i]),
               claim->kind->name, claim->kind->backend, address(claim->lock), raw(cycle[(i + 1) % length]));
    }
    log("# cycle: %s", text.c_str());
}

} // namespace spinkick::stress
