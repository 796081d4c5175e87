// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: KVM_HC_SEND_IPI interrupts the vCPUs of its set, each once, and no other, and returns how many there were.
// A set is 128 bits above a lowest APIC id, handed over as two words: sets are tried that have all their members in the
// first word, in the second, and on both sides of the border, as far as the ids of this machine allow; with absent ids
// in them, which do not count. A request with a shorthand or a logical destination must be refused.
#include "arch/x86/lapic.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Kvm;
namespace abi = paravirt::kvm_abi;

constexpr std::uint32_t kWordBits = 64, kSetBits = 128;
constexpr std::uint32_t kRounds = 4;
constexpr Nanoseconds kLimit = seconds(1);
constexpr Nanoseconds kSettle = microseconds(200); ///< an interrupt too many has come by then

/// Counted by each CPU's own handler.
struct alignas(64) Count {
    std::atomic<std::uint32_t> taken{0};
};
constinit std::array<Count, kMaxCpus> counts{};

struct Set {
    std::uint64_t words[2]{};
    std::uint32_t lowest = 0;
    std::uint32_t members = 0;
    [[nodiscard]] bool has(ApicId id) const noexcept {
        const auto bit = raw(id) - lowest;
        return raw(id) >= lowest && bit < kSetBits && (words[bit / kWordBits] >> (bit % kWordBits) & 1) != 0;
    }
};

ApicId id_of(std::uint32_t n) noexcept { return x86::percpu_of(machine::online_cpu(n)).apic_id; }

/// All online CPUs but the caller that fit above `lowest`, and one absent id if there is room.
Set set_above(std::uint32_t lowest) noexcept {
    Set set;
    set.lowest = lowest;
    for (std::uint32_t n = 1; n < machine::cpu_count(); ++n) {
        const auto id = raw(id_of(n));
        if (id < lowest || id - lowest >= kSetBits)
            continue;
        set.words[(id - lowest) / kWordBits] |= std::uint64_t{1} << ((id - lowest) % kWordBits);
        ++set.members;
    }
    return set;
}

bool is_absent(std::uint32_t id) noexcept {
    for (std::uint32_t n = 0; n < machine::cpus_found(); ++n)
        if (raw(x86::percpu_of(CpuId{n}).apic_id) == id)
            return false;
    return true;
}

void add_absent(Set& set) noexcept {
    for (std::uint32_t bit = kSetBits; bit-- > 0;)
        if (is_absent(set.lowest + bit)) {
            set.words[bit / kWordBits] |= std::uint64_t{1} << (bit % kWordBits);
            return;
        }
}

std::int64_t send(const Set& set, std::uint64_t icr, bool& faulted) noexcept {
    const auto result = paravirt::kvm_hypercall(B::yield_instruction.load(std::memory_order_relaxed),
                                                abi::Hypercall::SEND_IPI, set.words[0], set.words[1], set.lowest, icr);
    faulted = result.fault.happened;
    return result.value;
}

/// False, and a verdict, if not exactly the members of the set take it.
bool reaches(test::TestContext& context, const Set& set, const char* what) noexcept {
    for (std::uint32_t round = 0; round < kRounds; ++round) {
        std::array<std::uint32_t, kMaxCpus> before;
        for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
            before[n] = counts[index(machine::online_cpu(n))].taken.load(std::memory_order_relaxed);
        bool faulted = false;
        const auto sent = send(set, x86::lapic::kVectorTestHigh, faulted);
        if (faulted || sent != set.members) {
            context.fail("%s: KVM_HC_SEND_IPI to %u vCPUs returns %ld%s", what, set.members, sent,
                         faulted ? " (exception)" : "");
            return false;
        }
        const auto taken = [&before](std::uint32_t n) {
            return counts[index(machine::online_cpu(n))].taken.load(std::memory_order_relaxed) - before[n];
        };
        const clock::Deadline deadline(kLimit);
        for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
            while (set.has(id_of(n)) && n != 0 && taken(n) == 0 && !deadline.passed())
                machine::relax();
        spin_for(kSettle);
        for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) {
            const std::uint32_t expected = n != 0 && set.has(id_of(n)) ? 1u : 0u;
            if (taken(n) == expected)
                continue;
            context.fail("%s, lowest id %u: APIC id %u took %u interrupts, expected %u", what, set.lowest,
                         raw(id_of(n)), taken(n), expected);
            return false;
        }
    }
    return true;
}

bool refused(test::TestContext& context, std::uint64_t icr, const char* what) noexcept {
    bool faulted = false;
    const auto result = send(set_above(raw(id_of(1))), icr, faulted);
    if (!faulted && result == -abi::KVM_EINVAL)
        return true;
    context.fail("KVM_HC_SEND_IPI with %s returns %ld%s, expected EINVAL (%ld)", what, result,
                 faulted ? " (exception)" : "", -abi::KVM_EINVAL);
    return false;
}

/// True, and a skip, if the call is not offered or cannot be made.
bool is_missing(test::TestContext& context) noexcept {
    if (!paravirt::hypervisors().has(paravirt::KvmFeature::PV_SEND_IPI)) {
        context.skip("no PV_SEND_IPI: features EAX=0x%08x", paravirt::hypervisors().kvm_features);
        return true;
    }
    if (B::kick_transport.load(std::memory_order_relaxed) == paravirt::KvmKick::remrd) {
        context.skip("no hypercall was proved: kicks go by remote-read IPI");
        return true;
    }
    machine::set_level_handlers({.interrupt = []() noexcept {},
                                 .higher_interrupt =
                                     []() noexcept {
                                         // relaxed: a count that its own CPU writes
                                         counts[index(machine::this_cpu())].taken.fetch_add(1,
                                                                                            std::memory_order_relaxed);
                                     },
                                 .nmi = []() noexcept {}});
    return false;
}

void run(test::TestContext& context) {
    if (is_missing(context))
        return;
    std::uint32_t lowest = raw(id_of(1));
    for (std::uint32_t n = 1; n < machine::cpu_count(); ++n)
        lowest = raw(id_of(n)) < lowest ? raw(id_of(n)) : lowest;
    auto with_absent = set_above(lowest);
    add_absent(with_absent);
    constexpr std::uint64_t kShorthandAll = 2u << 18, kLogical = 1u << 11; // of the ICR
    if (reaches(context, set_above(lowest), "set from its lowest member on") &&
        reaches(context, with_absent, "set with an absent id") &&
        refused(context, x86::lapic::kVectorTestHigh | kShorthandAll, "a shorthand") &&
        refused(context, x86::lapic::kVectorTestHigh | kLogical, "a logical destination"))
        context.pass();
}

/// A border at `bits` above the lowest id of a set, with members on both sides of it.
bool straddles(const Set& set, std::uint32_t bits) noexcept {
    bool below = false, above = false;
    for (std::uint32_t n = 1; n < machine::cpu_count(); ++n)
        if (set.has(id_of(n)))
            (raw(id_of(n)) - set.lowest < bits ? below : above) = true;
    return below && above;
}

void run_across(test::TestContext& context) {
    if (is_missing(context))
        return;
    std::uint32_t highest = 0;
    bool tried = false;
    for (std::uint32_t n = 1; n < machine::cpu_count(); ++n)
        highest = raw(id_of(n)) > highest ? raw(id_of(n)) : highest;
    // Every lowest id for which a member lies right at the border, or right below it, on either word.
    for (std::uint32_t n = 1; n < machine::cpu_count() && context.status() == test::Status::none; ++n)
        for (const auto bit : {kWordBits - 1, kWordBits, kSetBits - 1}) {
            if (raw(id_of(n)) < bit)
                continue;
            const auto set = set_above(raw(id_of(n)) - bit);
            tried = tried || straddles(set, kWordBits) || bit == kWordBits || bit == kSetBits - 1;
            if (!reaches(context, set, "set across the border of its words"))
                return;
        }
    if (!tried)
        return context.skip("highest APIC id %u: no set has a member in its second word", highest);
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.pv_ipi_reaches_its_set",
               .backend = B::kName,
               .claim = "KVM_HC_SEND_IPI interrupts each vCPU of its set once, and no other, and counts them",
               .min_cpus = 2,
               .needs = test::Backend::kvm,
               .run = run},
    test::Test{.name = "paravirt.pv_ipi_across_64_ids",
               .backend = B::kName,
               .claim = "the same for sets whose members lie in the second word, or on both sides of the border",
               .min_cpus = 2,
               .needs = test::Backend::kvm,
               .run = run_across}};
constinit const test::TestGroup kvm_pv_ipi_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(kvm_pv_ipi_group);

} // namespace spinkick::paravirt_tests
