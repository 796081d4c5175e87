// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: the hypervisor keeps telling which vCPUs run and which do not. A page that is registered and then never
// written again would make every vCPU look as if it ran for ever.
//
// KVM rewrites the steal-time page when it has put the vCPU back on a CPU: so a vCPU poisons its `preempted` byte,
// sleeps, is kicked, and looks; the byte must be zero again, the version another and even, and the stolen time no less.
// (The rest of the page cannot be poisoned: KVM adds to what it finds.) Xen keeps the state in the runstate area:
// another vCPU must see the sleeper blocked while it sleeps, and the sleeper itself, when it is back, the time that it
// slept for.
#include <type_traits>

#include "arch/x86/paravirt/steal_time.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

namespace steal = paravirt::steal_time;

constexpr std::uint8_t kPoison = 0xa4; ///< bit 1 is clear: it would ask the host to flush the TLB
constexpr std::uint32_t kLeast = 8;
constexpr Nanoseconds kAsleep = milliseconds(1);
constexpr Nanoseconds kUntilAsleep = milliseconds(50); ///< a busy host may run the sleeper late

struct Shared {
    Turn asleep, looked, returned;
    std::atomic<bool> over{false};
    std::uint32_t rounds = 0;
    // Rounds in which the sleeper ...
    std::uint32_t not_cleared = 0;  ///< (KVM) found its poison
    std::uint32_t same_version = 0; ///< (KVM) found the version that it left
    std::uint32_t less_steal = 0;   ///< found less stolen time
    std::uint32_t not_blocked = 0;  ///< (Xen) was not seen blocked
    std::uint32_t no_time = 0;      ///< (Xen) found less time blocked than it slept
    std::uint32_t crowded = 0;      ///< (Xen) of no_time: it waited for its CPU meanwhile, and may not have slept
    std::uint32_t not_running = 0;  ///< (Xen) was back, and not running by its own area
};
constinit Shared shared{};

/// That a vCPU has waited for a CPU.
std::uint64_t waiting_time(const volatile paravirt::xen_abi::vcpu_runstate_info& area) noexcept {
    return area.time[paravirt::xen_abi::RUNSTATE_runnable] + area.time[paravirt::xen_abi::RUNSTATE_offline];
}

template <class B>
void sleeper() noexcept {
    constexpr bool kIsKvm = std::is_same_v<B, paravirt::Kvm>;
    const auto cpu = B::this_cpu();
    volatile auto& page = steal::detail::kvm_pages[index(cpu)].shared;
    const volatile auto& area = steal::detail::xen_areas[index(cpu)].shared;
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // set before `looked`
        const auto stolen = steal::steal(cpu);
        std::uint32_t version = 0;
        std::uint64_t blocked = 0, waiting = 0;
        if constexpr (kIsKvm) {
            version = page.version;
            page.preempted = kPoison;
        } else {
            blocked = area.time[paravirt::xen_abi::RUNSTATE_blocked];
            waiting = waiting_time(area);
        }
        shared.asleep.set(round);
        while (!shared.looked.reached(round)) {
            B::wait_unless([round] { return shared.looked.reached(round); });
            B::relax();
        }
        if constexpr (kIsKvm) {
            // A vCPU that had to wait for its CPU once more is marked, and then unmarked, by the host: never the
            // poison.
            shared.not_cleared += page.preempted == kPoison ? 1u : 0u;
            shared.same_version += page.version == version ? 1u : 0u;
        } else {
            const auto slept = area.time[paravirt::xen_abi::RUNSTATE_blocked] - blocked;
            if (slept < kAsleep.value / 2) {
                ++shared.no_time;
                shared.crowded += waiting_time(area) - waiting >= kAsleep.value / 2 ? 1u : 0u;
            }
            shared.not_running += area.state != paravirt::xen_abi::RUNSTATE_running ? 1u : 0u;
        }
        shared.less_steal += steal::steal(cpu) < stolen ? 1u : 0u;
        shared.rounds = round;
        shared.returned.set(round);
        workers::progress();
    }
}

template <class B>
void kicker() noexcept {
    const auto target = workers::cpu_of(kSleeper, first_cpu());
    const volatile auto& area = steal::detail::xen_areas[index(target)].shared;
    const Rounds rounds(milliseconds(10), kLeast);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        shared.asleep.await(round);
        if constexpr (std::is_same_v<B, paravirt::Xen>) {
            const clock::Deadline deadline(kUntilAsleep);
            while (area.state != paravirt::xen_abi::RUNSTATE_blocked && !deadline.passed())
                machine::relax();
            if (area.state != paravirt::xen_abi::RUNSTATE_blocked)
                ++shared.not_blocked;
        }
        spin_for(kAsleep);
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed);
        shared.looked.set(round);
        B::kick(target);
        shared.returned.await(round);
        workers::progress();
    }
}

template <class B>
void run(test::TestContext& context) {
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        if (const auto cpu = machine::online_cpu(n); !steal::is_registered(cpu))
            return context.skip("CPU %u has no %s", raw(cpu),
                                std::is_same_v<B, paravirt::Kvm> ? "steal-time page" : "runstate area");
    shared.asleep.reset(), shared.looked.reset(), shared.returned.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.rounds = shared.not_cleared = shared.same_version = shared.less_steal = 0;
    shared.not_blocked = shared.no_time = shared.crowded = shared.not_running = 0;
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? kicker<B>() : sleeper<B>(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a kick did not end the sleep"))
        return;
    // A host that is busy may let the sleeper sleep late, or kick it while it still runs: not in every round. A page
    // that nobody writes is one in all of them.
    const auto always = [](std::uint32_t count) { return count == shared.rounds; };
    const struct {
        std::uint32_t count;
        const char* what;
    } kFaults[] = {{shared.not_cleared, "`preempted` is not written when a vCPU runs again"},
                   {shared.same_version, "the steal-time page is not written when a vCPU runs again"},
                   {shared.not_blocked, "a vCPU that sleeps is not blocked by its runstate"},
                   {shared.no_time, "the time asleep is missing in the runstate area"},
                   {shared.not_running, "a vCPU that runs does not, by its runstate"}};
    // A host that had no CPU for the sleeper in any round has shown nothing about sleeps.
    if (always(shared.no_time) && shared.crowded == shared.rounds)
        return context.skip("the sleeper waited for a CPU in all %u rounds: the host is too busy", shared.rounds);
    for (const auto& fault : kFaults)
        if (always(fault.count))
            context.fail("%s: %u of %u times", fault.what, fault.count, shared.rounds);
    if (shared.less_steal != 0)
        context.fail("stolen time went back %u of %u times", shared.less_steal, shared.rounds);
    if (context.status() == test::Status::none)
        context.pass();
}

template <class B>
constexpr test::Test kTest{.name = "paravirt.steal_time_is_written",
                           .backend = B::kName,
                           .claim = "the hypervisor writes a vCPU's page each time the vCPU stops and runs again",
                           .min_cpus = 2,
                           .needs = paravirt::need_of<B>(),
                           .run = run<B>};
constexpr std::array kTests = {kTest<paravirt::Kvm>, kTest<paravirt::Xen>};
constinit const test::TestGroup steal_time_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(steal_time_group);

} // namespace spinkick::paravirt_tests
