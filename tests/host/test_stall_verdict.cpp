// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/stall_verdict.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace spinkick::workers {
namespace {

StalledCpu spinning(std::uint32_t cpu) { return {.cpu = CpuId{cpu}, .answered = true, .silent_for = seconds(10)}; }
StalledCpu halted(std::uint32_t cpu) {
    auto fact = spinning(cpu);
    fact.halted = true;
    return fact;
}
StalledCpu gets_on(std::uint32_t cpu) { return {.cpu = CpuId{cpu}, .gets_on = true}; }

void expect(const std::vector<StalledCpu>& cpus, StallKind kind, std::uint32_t cpu) {
    const auto verdict = judge_stall(cpus);
    EXPECT_STREQ(name(verdict.kind), name(kind));
    EXPECT_EQ(raw(verdict.cpu), cpu);
}

TEST(StallVerdict, NothingStandsStill) {
    expect({}, StallKind::none, 0);
    expect({gets_on(1), gets_on(2)}, StallKind::none, 0);
}

TEST(StallVerdict, AKickThatASleeperHasNotTakenIsLostOnTheWayItTook) {
    auto kicked = halted(2);
    kicked.kicks_by_hypervisor = 1;
    expect({halted(1), kicked, spinning(3)}, StallKind::lost_kick, 2);
    kicked.kicks_by_ipi = 1;
    expect({halted(1), kicked}, StallKind::lost_ipi, 2);
}

TEST(StallVerdict, AKickOfWhoRunsIsNotLost) {
    auto kicked = spinning(2);
    kicked.kicks_by_hypervisor = 1;
    expect({kicked, spinning(3)}, StallKind::deadlock, 3);
}

TEST(StallVerdict, ASleeperWithAnInterruptThatItWouldTakeHasLostIt) {
    auto requested = halted(4);
    requested.interrupt_requested = true;
    expect({spinning(1), requested}, StallKind::lost_ipi, 4);
}

TEST(StallVerdict, ASleeperWhomNobodyKickedIsTheLocks) {
    expect({spinning(1), halted(2)}, StallKind::lost_wake_up, 2);
    expect({gets_on(1), halted(2)}, StallKind::lost_wake_up, 2);
}

TEST(StallVerdict, SomeWhomTheHostDoesNotRunHoldUpTheOthers) {
    auto robbed = spinning(2);
    robbed.stolen = seconds(9);
    expect({spinning(1), robbed}, StallKind::holder_preempted, 2);
    expect({halted(1), robbed}, StallKind::holder_preempted, 2);
}

TEST(StallVerdict, AllWhomTheHostDoesNotRunIsASlowHost) {
    auto robbed = spinning(1);
    robbed.stolen = seconds(9);
    auto other = robbed;
    other.cpu = CpuId{2};
    expect({robbed, other}, StallKind::slow_host, 2);
}

TEST(StallVerdict, AFairShareOfABusyHostIsNoTheft) {
    auto shared = spinning(1);
    shared.stolen = seconds(5); // of ten: two vCPUs on one CPU
    expect({shared, spinning(2)}, StallKind::deadlock, 2);
}

TEST(StallVerdict, WhoSpinsWhileOthersGetOnStarves) {
    expect({gets_on(1), spinning(2)}, StallKind::starvation, 2);
    expect({spinning(1), spinning(2)}, StallKind::deadlock, 2);
}

TEST(StallVerdict, WhoTakesNoNmiIsNamed) {
    auto silent = spinning(3);
    silent.answered = false;
    expect({spinning(1), silent}, StallKind::no_answer, 3);
    auto kicked = halted(2); // better evidence
    kicked.kicks_by_hypervisor = 1;
    expect({kicked, silent}, StallKind::lost_kick, 2);
}

TEST(StallVerdict, WhoGetsNoTimeToAnswerIsTheHosts) {
    auto silent = spinning(3);
    silent.answered = false;
    silent.stolen = seconds(9);
    expect({spinning(1), silent}, StallKind::holder_preempted, 3);
    expect({silent}, StallKind::slow_host, 3);
}

TEST(StallVerdict, AWaiterThatGetsNoTimeIsNotWhatHoldsTheOthersUp) {
    auto waiter = spinning(2);
    waiter.stolen = seconds(9);
    waiter.waits = waiter.is_entitled = true;
    expect({gets_on(1), waiter}, StallKind::starvation, 2);
    auto holder = spinning(1);
    holder.stolen = seconds(9);
    holder.holds_up = true;
    expect({holder, waiter}, StallKind::holder_preempted, 1);
}

TEST(StallVerdict, WhoWasWokenAndGetsNoTimeHasLostNothing) {
    auto woken = halted(1);
    woken.stolen = seconds(9);
    woken.interrupt_requested = true;
    expect({spinning(2), woken}, StallKind::holder_preempted, 1);
    woken.kicks_by_hypervisor = 1;
    expect({spinning(2), woken}, StallKind::holder_preempted, 1);
}

TEST(StallVerdict, EveryKindHasANameAndAMeaning) {
    for (auto kind = StallKind::lost_ipi; kind <= StallKind::no_answer;
         kind = static_cast<StallKind>(static_cast<int>(kind) + 1)) {
        EXPECT_STRNE(name(kind), "");
        EXPECT_STRNE(meaning(kind), "");
    }
}

TEST(StallVerdict, ACycleIsADeadlockWhetherItsMembersSpinOrSleep) {
    auto first = halted(1), second = spinning(2);
    first.in_cycle = second.in_cycle = true;
    first.waits = second.waits = first.holds_up = second.holds_up = first.is_entitled = second.is_entitled = true;
    first.kicks_by_ipi = 1; // of an earlier wait
    expect({first, second, gets_on(3)}, StallKind::deadlock, 2);
}

TEST(StallVerdict, WhoSleepsForALockThatIsHeldLacksNoWakeUp) {
    auto sleeper = halted(1);
    sleeper.waits = sleeper.is_entitled = true;
    auto holder = spinning(2);
    holder.holds_up = true;
    expect({sleeper, holder}, StallKind::holder_stuck, 2);
    holder.halted = true;
    expect({sleeper, holder}, StallKind::holder_stuck, 2);
    sleeper.is_entitled = false; // nobody holds it, and still it sleeps
    holder.holds_up = false;
    holder.halted = false;
    expect({sleeper, holder}, StallKind::lost_wake_up, 1);
}

TEST(StallVerdict, AHolderThatTheHostDoesNotRunIsPreemptedAndNotStuck) {
    auto sleeper = halted(1);
    sleeper.waits = sleeper.is_entitled = true;
    auto holder = spinning(2);
    holder.holds_up = true;
    holder.stolen = seconds(9);
    expect({sleeper, holder}, StallKind::holder_preempted, 2);
}

TEST(StallVerdict, SleepersAloneOfWhichEachIsEntitledAreADeadlock) {
    auto sleeper = halted(1);
    sleeper.waits = sleeper.is_entitled = true;
    expect({sleeper}, StallKind::deadlock, 1);
}

} // namespace
} // namespace spinkick::workers
