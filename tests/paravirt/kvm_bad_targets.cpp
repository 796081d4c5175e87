// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a kick, or a yield, that is aimed at nobody reaches nobody. By each transport of KVM: to an APIC id above
// all others, to a gap between two, to one far away, to a vCPU that exists and is not online, and to the sender itself.
// An answer may be success, an error or silence; it must not be an exception, the guest goes on, and a vCPU that sleeps
// meanwhile is not woken. A yield is a hint and wakes nobody at all, not even the sleeper that it names.
//
// The id 255 is left out: in KVM it is a broadcast, by hypercall as by IPI (docs/known-deviations.md).
#include "arch/x86/lapic.hpp"
#include "arch/x86/msr.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Kvm;
namespace abi = paravirt::kvm_abi;

enum class Way : std::uint8_t { kick, yield, remote_read };
constexpr std::array kWays = {Way::kick, Way::yield, Way::remote_read};

constexpr const char* name(Way way) noexcept {
    switch (way) {
    case Way::kick:
        return "KVM_HC_KICK_CPU";
    case Way::yield:
        return "KVM_HC_SCHED_YIELD";
    case Way::remote_read:
        return "remote-read IPI";
    }
    return "";
}

struct Target {
    const char* name = nullptr;
    ApicId id{};
    bool sleeps = false; ///< the bystander itself: yields only
};
constexpr std::size_t kMostTargets = 8;
constexpr std::uint32_t kSends = 4;
constexpr Nanoseconds kSettle = microseconds(100);
constexpr Nanoseconds kAsleep = milliseconds(1);

struct Shared {
    Turn asleep, release;
    std::atomic<std::uint32_t> woken{0};
    std::array<Target, kMostTargets> targets{};
    std::size_t count = 0;
    bool has_hypercalls = false;
    const char* bad_way = nullptr;
    const char* bad_target = nullptr;
    std::uint32_t bad_id = 0, bad_wakes = 0, bad_vector = 0;
};
constinit Shared shared{};

bool exists(ApicId id) noexcept {
    for (std::uint32_t n = 0; n < machine::cpus_found(); ++n)
        if (x86::percpu_of(CpuId{n}).apic_id == id)
            return true;
    return false;
}

void add_target(const char* name, ApicId id, bool sleeps = false) noexcept {
    if (shared.count < kMostTargets)
        shared.targets[shared.count++] = {name, id, sleeps};
}

void collect_targets() noexcept {
    constexpr std::uint32_t kLastXapicId = 254;
    shared.count = 0;
    std::uint32_t highest = 0;
    for (std::uint32_t n = 0; n < machine::cpus_found(); ++n)
        highest = raw(x86::percpu_of(CpuId{n}).apic_id) > highest ? raw(x86::percpu_of(CpuId{n}).apic_id) : highest;
    add_target("its own id", x86::percpu_of(workers::cpu_of(kKicker, first_cpu())).apic_id);
    add_target("a halted vCPU", x86::percpu_of(workers::cpu_of(kSleeper, first_cpu())).apic_id, true);
    if (highest < kLastXapicId)
        add_target("an id above all others", ApicId{highest + 1});
    if (highest + 1 < kLastXapicId)
        add_target("an absent id", ApicId{kLastXapicId});
    for (std::uint32_t id = 0; id < highest; ++id)
        if (!exists(ApicId{id})) {
            add_target("an id in a gap", ApicId{id});
            break;
        }
    for (std::uint32_t n = 0; n < machine::cpus_found(); ++n)
        if (!x86::percpu_of(CpuId{n}).online.load(std::memory_order_relaxed)) {
            add_target("a vCPU that is not online", x86::percpu_of(CpuId{n}).apic_id);
            break;
        }
    if (x86::lapic::is_x2apic())
        add_target("an absent id of 32 bits", ApicId{0x7fff'fffe});
}

/// The vector of an exception; 0 for none.
std::uint32_t send(Way way, ApicId id) noexcept {
    const auto call = [](abi::Hypercall number, std::uint64_t a0, std::uint64_t a1) -> std::uint32_t {
        const auto result =
            paravirt::kvm_hypercall(B::yield_instruction.load(std::memory_order_relaxed), number, a0, a1);
        return result.fault.happened ? result.fault.vector : 0;
    };
    switch (way) {
    case Way::kick:
        return call(abi::Hypercall::KICK_CPU, 0, raw(id));
    case Way::yield:
        return call(abi::Hypercall::SCHED_YIELD, raw(id), 0);
    case Way::remote_read:
        if (x86::lapic::is_x2apic()) {
            constexpr std::uint32_t kGp = 13;
            const auto low = static_cast<std::uint32_t>(x86::lapic::Delivery::remote_read);
            return x86::wrmsr_safe(x86::Msr::IA32_X2APIC_ICR, std::uint64_t{raw(id)} << 32 | low) ? 0 : kGp;
        }
        x86::lapic::send(id, x86::lapic::Delivery::remote_read, 0);
        return 0;
    }
    return 0;
}

void try_one(Way way, const Target& target) noexcept {
    const auto before = shared.woken.load(std::memory_order_relaxed);
    std::uint32_t vector = 0;
    for (std::uint32_t i = 0; i < kSends; ++i) {
        vector |= send(way, target.id);
        spin_for(kSettle);
    }
    workers::progress();
    const auto wakes = shared.woken.load(std::memory_order_relaxed) - before;
    // A sleep may end for no reason now and then.
    if ((vector != 0 || wakes * 2 > kSends) && shared.bad_way == nullptr) {
        shared.bad_way = name(way);
        shared.bad_target = target.name;
        shared.bad_id = raw(target.id);
        shared.bad_wakes = wakes;
        shared.bad_vector = vector;
    }
}

void sender() noexcept {
    shared.asleep.await(1);
    spin_for(kAsleep);
    for (const auto way : kWays) {
        if (way != Way::remote_read && !shared.has_hypercalls)
            continue;
        begin_cell(name(way));
        for (std::size_t i = 0; i < shared.count; ++i)
            if (way == Way::yield || !shared.targets[i].sleeps)
                try_one(way, shared.targets[i]);
    }
    begin_cell("release of the bystander");
    shared.release.set(1);
    B::kick(workers::cpu_of(kSleeper, first_cpu()));
}

void bystander() noexcept {
    const auto state = B::disable_interrupts();
    shared.asleep.set(1);
    while (!shared.release.reached(1)) {
        B::wait_unless([] { return shared.release.reached(1); });
        if (!shared.release.reached(1))
            shared.woken.fetch_add(1, std::memory_order_relaxed); // a count
        B::relax();
    }
    B::restore_interrupts(state);
    workers::progress();
}

void run(test::TestContext& context) {
    shared.asleep.reset(), shared.release.reset();
    shared.woken.store(0, std::memory_order_relaxed);
    shared.bad_way = nullptr;
    shared.has_hypercalls = B::kick_transport.load(std::memory_order_relaxed) != paravirt::KvmKick::remrd;
    collect_targets();
    const auto body = [](std::uint32_t worker, void*) { worker == kKicker ? sender() : bystander(); };
    if (!run_workers<B>(context, 2, body, nullptr, "a kick of nobody stalled the machine"))
        return;
    if (shared.bad_vector != 0)
        return context.fail("%s to %s, %u: exception %u", shared.bad_way, shared.bad_target, shared.bad_id,
                            shared.bad_vector);
    if (shared.bad_way != nullptr)
        return context.fail("%s to %s, %u: %u of %u ended the sleep of another vCPU", shared.bad_way, shared.bad_target,
                            shared.bad_id, shared.bad_wakes, kSends);
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.kick_of_nobody_harms_nobody",
               .backend = B::kName,
               .claim = "kicks and yields to absent, offline and own APIC ids raise nothing and wake no other vCPU",
               .min_cpus = 2,
               .needs = test::Backend::kvm,
               .run = run}};
constinit const test::TestGroup kvm_bad_targets_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kvm_bad_targets_group);

} // namespace spinkick::paravirt_tests
