// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/stress/stall_verdict.hpp"

namespace spinkick::workers {

const char* name(StallKind kind) noexcept {
    switch (kind) {
    case StallKind::none:
        return "no stall";
    case StallKind::lost_ipi:
        return "lost IPI";
    case StallKind::lost_kick:
        return "lost kick";
    case StallKind::lost_wake_up:
        return "lost wake-up";
    case StallKind::holder_preempted:
        return "holder preempted";
    case StallKind::slow_host:
        return "slow host";
    case StallKind::starvation:
        return "starvation";
    case StallKind::deadlock:
        return "deadlock";
    case StallKind::holder_stuck:
        return "holder stuck";
    case StallKind::no_answer:
        return "no answer";
    }
    return "";
}

const char* meaning(StallKind kind) noexcept {
    switch (kind) {
    case StallKind::none:
        return "";
    case StallKind::lost_ipi:
        return "an interrupt was sent to it and it halts on: look at the hypervisor's or the machine's APIC";
    case StallKind::lost_kick:
        return "it was kicked and halts on: look at the hypervisor's kick";
    case StallKind::lost_wake_up:
        return "it halts and nobody has kicked it: look at the lock";
    case StallKind::holder_preempted:
        return "the host does not run it, and the others wait for it";
    case StallKind::slow_host:
        return "the host has run none of those that stand still: look at its load";
    case StallKind::starvation:
        return "it runs and never gets its turn, while others do";
    case StallKind::deadlock:
        return "they wait for each other: look at the order in which locks are taken";
    case StallKind::holder_stuck:
        return "it holds the lock that others wait for and stands still in its section: look at what it does there";
    case StallKind::no_answer:
        return "it does not take an NMI: the host does not run it, or it is lost in one";
    }
    return "";
}

namespace {

/// The host has given its time to others. A quarter is a fair share on a host with four times more vCPUs than CPUs.
bool is_robbed(const StalledCpu& cpu) noexcept { return cpu.stolen.value > cpu.silent_for.value / 4 * 3; }

} // namespace

StallVerdict judge_stall(std::span<const StalledCpu> cpus) noexcept {
    const StalledCpu* lost_ipi = nullptr;
    const StalledCpu* lost_kick = nullptr;
    const StalledCpu* requested = nullptr;
    const StalledCpu* silent = nullptr;
    const StalledCpu* robbed = nullptr;
    const StalledCpu* asleep = nullptr;
    const StalledCpu* spinning = nullptr;
    const StalledCpu* at_rest = nullptr; // sleeps, and may: somebody holds what it waits for
    const StalledCpu* in_cycle = nullptr;
    const StalledCpu* stuck = nullptr;
    std::uint32_t still = 0, robbed_count = 0, running = 0;
    bool somebody_gets_on = false;
    for (const auto& cpu : cpus) {
        if (cpu.gets_on) {
            somebody_gets_on = true;
            continue;
        }
        ++still;
        if (cpu.in_cycle)
            in_cycle = &cpu;
        if (cpu.holds_up && !cpu.waits)
            stuck = &cpu;
        // Who gets no time does not answer, does not get on, and does not even wake up when it is kicked. Where another
        // one has the lock, more time would not have helped.
        if (is_robbed(cpu) && cpu.is_entitled) {
            ++running;
            spinning = &cpu;
            continue;
        }
        if (is_robbed(cpu)) {
            ++robbed_count;
            ++running;
            robbed = &cpu;
            continue;
        }
        if (!cpu.answered) {
            silent = &cpu;
            continue;
        }
        if (!cpu.halted) {
            ++running;
            spinning = &cpu;
            continue;
        }
        if (cpu.kicks_by_ipi != 0)
            lost_ipi = &cpu;
        else if (cpu.kicks_by_hypervisor != 0)
            lost_kick = &cpu;
        else if (cpu.interrupt_requested)
            requested = &cpu;
        else if (!cpu.is_entitled && &cpu != stuck)
            asleep = &cpu;
        else
            at_rest = &cpu;
    }
    if (still == 0)
        return {};
    if (in_cycle != nullptr)
        return {StallKind::deadlock, in_cycle->cpu};
    if (lost_ipi != nullptr)
        return {StallKind::lost_ipi, lost_ipi->cpu};
    if (lost_kick != nullptr)
        return {StallKind::lost_kick, lost_kick->cpu};
    if (requested != nullptr)
        return {StallKind::lost_ipi, requested->cpu};
    if (silent != nullptr)
        return {StallKind::no_answer, silent->cpu};
    if (robbed != nullptr)
        return {robbed_count == running && asleep == nullptr && at_rest == nullptr && !somebody_gets_on
                    ? StallKind::slow_host
                    : StallKind::holder_preempted,
                robbed->cpu};
    if (stuck != nullptr)
        return {StallKind::holder_stuck, stuck->cpu};
    if (asleep != nullptr)
        return {StallKind::lost_wake_up, asleep->cpu};
    return {somebody_gets_on ? StallKind::starvation : StallKind::deadlock,
            (spinning != nullptr ? spinning : at_rest)->cpu};
}

} // namespace spinkick::workers
