// SPDX-License-Identifier: BSD-2-Clause
//
// One vCPU that sleeps and one that kicks it, round by round: the frame of the kick tests. They test a back end and
// with it the hypervisor; no lock is involved. At the end of each the kicks are accounted for
// (kernel/sync/kick_tokens.hpp), so that one that was lost or invented is found by whichever test it struck.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "arch/x86/paravirt/backends.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/paravirt.hpp"
#include "arch/x86/xen_pv/active.hpp"
#include "kernel/clock.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::paravirt_tests {

inline constexpr std::uint32_t kKicker = 0; ///< worker 0 never sleeps and never masks interrupts
inline constexpr std::uint32_t kSleeper = 1;

/// Rounds of one test: as many as fit into the time, but some on the slowest machine.
inline constexpr std::uint32_t kLeastRounds = 16;
inline constexpr std::uint32_t kMostRounds = 2000;
inline constexpr Nanoseconds kTime = milliseconds(100);

/// The first CPU of `count` workers: the boot CPU stays out of it where enough others are left, since its timer is the
/// watchdog's.
[[nodiscard]] inline std::uint32_t first_cpu(std::uint32_t count = 2) noexcept {
    return workers::available(1) >= count ? 1 : 0;
}

/// xorshift64: the same choices for the same seed.
class Random {
  public:
    explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed | 1) {}
    [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ % bound;
    }

  private:
    std::uint64_t state_;
};

/// A flag that one worker raises to the number of its round and the other waits for. On a line of its own.
class alignas(64) Turn {
  public:
    /// seq_cst: published with a full barrier before the kick that follows, as every back end asks of its callers.
    void set(std::uint32_t round) noexcept { value_.exchange(round, std::memory_order_seq_cst); }
    [[nodiscard]] bool reached(std::uint32_t round) const noexcept {
        return value_.load(std::memory_order_acquire) >= round; // what the other did before set() is seen
    }
    /// Spins; a peer that never gets there is the watchdog's business.
    void await(std::uint32_t round) const noexcept {
        while (!reached(round))
            machine::relax();
    }
    void reset() noexcept { value_.store(0, std::memory_order_relaxed); } // before the workers start

  private:
    std::atomic<std::uint32_t> value_{0};
};

[[nodiscard]] inline bool reached_within(const Turn& turn, std::uint32_t round, Nanoseconds limit) noexcept {
    const clock::Deadline deadline(limit);
    while (!turn.reached(round))
        if (deadline.passed())
            return turn.reached(round);
        else
            machine::relax();
    return true;
}

inline void spin_for(Nanoseconds span) noexcept {
    const clock::Deadline deadline(span);
    while (!deadline.passed())
        machine::relax();
}

/// Xen on emulated SVM leaves a vCPU at the IRET of an NMI handler now and then, interrupts off, until another NMI
/// (docs/known-deviations.md). The question where it stands is one, and would end a halt too: so what it finds there
/// counts.
struct Stood {
    std::uint32_t at_iret = 0; ///< times that an NMI handler did not come back; the kick was requested there
    std::uint32_t halted = 0;  ///< times that nothing had ended the halt

    /// The sleeper's return. True if it needed help.
    bool await(const Turn& returned, std::uint32_t round, CpuId target) noexcept {
        // The handler of the NMI that asks may stand at its IRET as well: another look. All before the watchdog's.
        constexpr std::uint32_t kLooks = 3;
        constexpr Nanoseconds kPatience = milliseconds(2500), kLimit = milliseconds(500);
        const bool may_stand =
            paravirt::hypervisors().find(paravirt::HypervisorKind::xen) != nullptr && !x86::xen_pv::is_active();
        bool helped = false;
        for (std::uint32_t look = 0; may_stand && look < kLooks && !reached_within(returned, round, kPatience);
             ++look) {
            const auto at = machine::inspect(target, kLimit);
            // A kick by event channel is pending in its port, which is masked, and so requests no vector.
            const bool kicked = at.requested != 0 || at.port_pending;
            const bool stands = at.answered && !at.halted && !at.interrupts_on && kicked;
            const bool sleeps = at.halted && at.requested == 0;
            at_iret += stands && !helped ? 1u : 0u;
            halted += sleeps ? 1u : 0u;
            helped = helped || stands || sleeps;
        }
        returned.await(round);
        return helped;
    }
    void report(test::TestContext& context) const noexcept {
        if (halted != 0)
            context.fail("%u kicks were lost: the vCPU was halted, and nothing requested", halted);
        if (at_iret != 0)
            context.skip("%u NMI handlers stood at their IRET until another NMI came, with the kick requested; no kick "
                         "was lost",
                         at_iret);
    }
};

/// Decides on the kicker's side whether another round follows.
class Rounds {
  public:
    explicit Rounds(Nanoseconds time = kTime, std::uint32_t least = kLeastRounds,
                    std::uint32_t most = kMostRounds) noexcept
        : deadline_(time), least_(least), most_(most) {}
    [[nodiscard]] bool is_last(std::uint32_t round) const noexcept {
        return round >= most_ || (round >= least_ && deadline_.passed());
    }

  private:
    clock::Deadline deadline_;
    std::uint32_t least_, most_;
};

/// Sum over all CPUs.
[[nodiscard]] inline std::uint64_t total(sync::LockEvent event) noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        sum += machine::lock_event(machine::online_cpu(n), event);
    return sum;
}

/// What is being tried at the moment, for a verdict: the cell of a test's matrix, and how kicks travel. Static texts.
struct Trial {
    std::atomic<const char*> cell{nullptr};
    const char* transport = "";
};
inline constinit Trial trial{};

/// Names the cell in the verdict of a stall, and in its dump for the calling CPU.
inline void begin_cell(const char* name) noexcept {
    trial.cell.store(name, std::memory_order_relaxed); // a text that is constant; read after the workers have ended
    workers::note(name);
}

/// The terms of the token identity, over all CPUs, since boot.
struct Account {
    std::uint64_t sent, ended, kept, merged, interrupted, without_token, unspent;
};
template <class B>
[[nodiscard]] Account account() noexcept {
    using enum sync::LockEvent;
    return {total(kick_stats),
            total(token_ended),
            total(token_kept),
            total(token_merged),
            total(token_interrupted),
            total(wake_without_token),
            sync::KickTokens<B>::unspent()};
}

/// False, and a verdict in `context`, if the kicks since `before` do not add up:
///   sent = ended + kept + merged + unspent, and
///   sleeps that ended without reason <= tokens taken by a wait that their own kick did not end.
template <class B>
[[nodiscard]] bool adds_up(test::TestContext& context, const Account& before) noexcept {
    const auto after = account<B>();
    const auto sent = after.sent - before.sent;
    const auto ended = after.ended - before.ended;
    const auto kept = after.kept - before.kept;
    const auto merged = after.merged - before.merged;
    const auto interrupted = after.interrupted - before.interrupted;
    const auto without = after.without_token - before.without_token;
    const auto unspent = after.unspent - before.unspent; // may wrap: an earlier test's leftovers were taken
    if (sent != ended + kept + merged + unspent) {
        context.fail("%llu kicks sent, but %llu ended + %llu kept + %llu merged + %lld unspent",
                     static_cast<unsigned long long>(sent), static_cast<unsigned long long>(ended),
                     static_cast<unsigned long long>(kept), static_cast<unsigned long long>(merged),
                     static_cast<long long>(unspent));
        return false;
    }
    // A kick is remembered as a flag of its vCPU: one may be left over there from what ran before.
    const auto reasons = kept + merged + interrupted + machine::cpu_count();
    if (without > reasons) {
        context.fail("%llu sleeps ended without a token or an interrupt, at most %llu have a reason",
                     static_cast<unsigned long long>(without), static_cast<unsigned long long>(reasons));
        return false;
    }
    return true;
}

/// Runs `body` on `count` workers. False, and a verdict in `context`, if one of them stood still, or if the kicks do
/// not add up afterwards.
template <class B>
[[nodiscard]] bool run_workers(test::TestContext& context, std::uint32_t count, workers::Body body, void* argument,
                               const char* lost) noexcept {
    workers::Job job;
    job.body = body;
    job.argument = argument;
    job.count = count;
    job.first = first_cpu(count);
    trial.cell.store(nullptr, std::memory_order_relaxed); // the workers have not begun
    const auto before = account<B>();
    const auto outcome = workers::run(job);
    if (outcome.all_completed())
        return adds_up<B>(context, before);
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        B::reset_cpu(machine::online_cpu(n));
    const auto* const cell = trial.cell.load(std::memory_order_relaxed);
    context.fail("%s: CPU %u stood still%s%s%s%s", lost, raw(outcome.first_stalled), cell == nullptr ? "" : "; ",
                 cell == nullptr ? "" : cell, *trial.transport == '\0' ? "" : "; by ", trial.transport);
    return false;
}

/// Runs `claim` once by each way in which the back end can kick, until it says false. True if it never did. On the boot
/// CPU, while nothing runs.
template <class B, class Claim>
[[nodiscard]] bool by_each_transport(Claim claim) noexcept {
    constexpr auto kBackend = paravirt::need_of<B>();
    bool holds = true;
    for (std::uint32_t n = 0; holds && n < paravirt::kick_transports(kBackend); ++n) {
        paravirt::use_kick_transport(kBackend, n);
        trial.transport = paravirt::kick_transport(kBackend).data(); // ends with a NUL: a literal
        holds = claim();
    }
    paravirt::use_kick_transport(kBackend, 0);
    trial.transport = "";
    return holds;
}

/// The test of one claim on every sleeping back end.
template <class Maker, class... Bs>
[[nodiscard]] consteval auto tests_on(Maker maker, sync::TypeList<Bs...>) noexcept {
    return std::array<test::Test, sizeof...(Bs)>{maker.template operator()<Bs>()...};
}

} // namespace spinkick::paravirt_tests
