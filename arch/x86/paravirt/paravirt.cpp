// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/paravirt.hpp"

#include <array>
#include <atomic>
#include <utility>

#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/ipi.hpp"
#include "arch/x86/paravirt/kick_proof.hpp"
#include "arch/x86/paravirt/kvm.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/paravirt/steal_time.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/paravirt/xen_error.hpp"
#include "arch/x86/percpu.hpp"
#include "kernel/log.hpp"

namespace spinkick::paravirt {
namespace {

using test::Backend;
constexpr std::size_t kBackends = static_cast<std::size_t>(Backend::any) + 1;

constexpr std::size_t kTransports = 2;

struct Entry {
    Probe probe;
    std::array<std::string_view, kTransports> transports{}; ///< that work
    std::array<KvmKick, kTransports> kvm_kicks{};           ///< what they are to the KVM back end
    std::uint32_t count = 0;
    std::atomic<std::uint32_t> current{0};
};
constinit std::array<Entry, kBackends> table{};
constinit DefaultLock chosen{};

// What CPUs found on their way up, for prove_and_choose() to judge and say.
constinit HypercallResult xen_shared_page{};
constinit std::atomic<std::uint32_t> initialised{0};
constinit std::atomic<std::uint32_t> clock_pages{0};
constinit std::atomic<std::uint32_t> xen_failures{0};
constinit std::atomic<std::int64_t> xen_failure{0};      // the last one: fault vector or Xen's error
constinit std::atomic<std::uint32_t> different_hints{0}; // CPUs whose KVM hints are not the boot CPU's

Entry& entry_of(Backend backend) noexcept { return table[static_cast<std::size_t>(backend)]; }

void check_hints() noexcept {
    const auto* kvm = hypervisors().find(HypervisorKind::kvm);
    if (kvm == nullptr || !kvm->has(cpuid_abi::kKvmFeatures))
        return;
    if (x86::cpuid(kvm->base + cpuid_abi::kKvmFeatures).edx != hypervisors().kvm_hints)
        different_hints.fetch_add(1, std::memory_order_relaxed);
}

void set_does_not_work(Entry& entry, const char* how) noexcept {
    entry.probe.availability = Availability::does_not_work;
    entry.probe.fact.set("offered but does not work: %s", how);
    entry.count = 0;
}

/// Tries one transport; true if it is now one of the back end's.
bool adopt(Entry& entry, const KickTransport& transport, TextBuffer& failures) noexcept {
    const auto proof = prove(transport);
    if (proof.outcome == KickOutcome::works) {
        entry.transports[entry.count++] = transport.name;
        log("# kick: %s works, %s", transport.name.data(), proof.how.c_str());
        return true;
    }
    log("# kick: %s offered but does not work: %s", transport.name.data(), proof.how.c_str());
    if (!failures.empty())
        failures.append("; ");
    format(failures, "%s: %s", transport.name.data(), proof.how.c_str());
    return false;
}

bool adopt_kvm(Entry& entry, KvmKick kick, const KickTransport& transport, TextBuffer& failures) noexcept {
    const auto n = entry.count;
    if (!adopt(entry, transport, failures))
        return false;
    entry.kvm_kicks[n] = kick;
    return true;
}

bool adopt_hypercall(Entry& entry, HypercallInstruction instruction, TextBuffer& failures) noexcept {
    const bool vmcall = instruction == HypercallInstruction::vmcall;
    if (!adopt_kvm(entry, Kvm::by(instruction), vmcall ? kvm_vmcall_transport() : kvm_vmmcall_transport(), failures))
        return false;
    Kvm::yield_instruction.store(instruction, std::memory_order_relaxed); // read by later yields; CPUs are idle now
    Kvm::yields.store(hypervisors().has(KvmFeature::PV_SCHED_YIELD), std::memory_order_relaxed);
    return true;
}

/// All transports, not only the first that works: tests compare them, and switch between them.
void prove_kvm(const Options& options) noexcept {
    auto& entry = entry_of(Backend::kvm);
    if (!runs(entry.probe.availability))
        return;
    char text[200];
    TextBuffer failures(text);
    if (options.kick != KickChoice::remrd) {
        const auto first = vendors_instruction();
        if (!adopt_hypercall(entry, first, failures))
            (void)adopt_hypercall(entry, other(first), failures);
    }
    if (options.kick != KickChoice::hypercall)
        (void)adopt_kvm(entry, KvmKick::remrd, kvm_remrd_transport(), failures);
    if (entry.count == 0)
        return set_does_not_work(entry, failures.c_str());
    use_kick_transport(Backend::kvm, 0);
}

void prove_xen() noexcept {
    auto& entry = entry_of(Backend::xen);
    if (!runs(entry.probe.availability))
        return;
    KickText how;
    if (xen_shared_page.fault.happened)
        how.set("%s raises vector %u", name(vendors_instruction()), xen_shared_page.fault.vector);
    else if (xen_shared_page.value < 0)
        how.set("the shared page or FIFO event channels are refused: %s", xen_error_text(xen_shared_page).c_str());
    else if (const auto failed = xen_failures.load(std::memory_order_acquire); failed != 0)
        how.set("%u of %u CPUs could not register: %s", failed, initialised.load(std::memory_order_relaxed),
                xen_error_text(xen_failure.load(std::memory_order_relaxed)).c_str());
    if (!how.empty()) {
        log("# kick: event channel offered but does not work: %s", how.c_str());
        return set_does_not_work(entry, how.c_str());
    }
    char text[200];
    TextBuffer failures(text);
    if (!adopt(entry, xen_evtchn_transport(), failures))
        set_does_not_work(entry, failures.c_str());
}

void prove_ipi(std::uint32_t cpus) noexcept {
    auto& entry = entry_of(Backend::ipi);
    if (!runs(entry.probe.availability))
        return;
    if (cpus < 2) {
        entry.transports[entry.count++] = ipi_transport().name;
        return; // usable as it is: a lock without contention never sleeps
    }
    char text[200];
    TextBuffer failures(text);
    if (!adopt(entry, ipi_transport(), failures))
        set_does_not_work(entry, failures.c_str());
}

void log_summary() noexcept {
    if (const auto different = different_hints.load(std::memory_order_relaxed); different != 0)
        log("# WARN KVM hints: %u CPUs differ from the boot CPU's EDX=0x%08x", different, hypervisors().kvm_hints);
    log("# registered: %u CPUs, steal time %u, clock pages %u", initialised.load(std::memory_order_relaxed),
        steal_time::registered(), clock_pages.load(std::memory_order_relaxed));
    for (const auto backend : {Backend::ipi, Backend::kvm, Backend::xen}) {
        const auto& entry = entry_of(backend);
        const char* label = backend == Backend::ipi ? "ipi" : backend == Backend::kvm ? "kvm" : "xen";
        // A fact that forbids a back end says itself what it is: "switched off: pv=off".
        const bool usable = runs(entry.probe.availability);
        const auto transport = kick_transport(backend);
        log("# back end %s: %s%s%s%s%s%s%s", label, usable ? name(entry.probe.availability).data() : "",
            usable ? ": " : "", entry.probe.fact.c_str(), transport.empty() ? "" : ", kick by ",
            transport.empty() ? "" : transport.data(),
            entry.count < 2 ? "" : "; also works: ", entry.count < 2 ? "" : entry.transports[1].data());
    }
    log("# lock default: %s on %s because %s", chosen.lock.data(), chosen.backend.data(), chosen.reason.c_str());
}

} // namespace

void init_this_cpu(EventChannels event_channels) noexcept {
    const bool boot_cpu = x86::this_cpu() == CpuId{0};
    if (boot_cpu)
        Ipi::init();
    check_hints();
    if (pvclock::init_this_cpu())
        clock_pages.fetch_add(1, std::memory_order_relaxed);
    (void)steal_time::init_kvm_this_cpu();
    if (hypervisors().find(HypervisorKind::xen) != nullptr) {
        if (boot_cpu)
            xen_shared_page = Xen::init(event_channels);
        if (xen_shared_page.ok()) {
            const auto result = Xen::init_this_cpu();
            if (!result.ok()) {
                xen_failure.store(result.fault.happened ? std::int64_t{result.fault.vector} : result.value,
                                  std::memory_order_relaxed);
                xen_failures.fetch_add(1, std::memory_order_release); // the reason above comes with it
            }
        }
    }
    initialised.fetch_add(1, std::memory_order_relaxed);
}

void prove_and_choose(const Options& options, std::uint32_t cpus) noexcept {
    for (const auto backend : {Backend::native, Backend::any}) {
        entry_of(backend).probe.availability = Availability::usable;
        entry_of(backend).probe.fact.set("always");
    }
    entry_of(Backend::ipi).probe = probe_ipi(options);
    entry_of(Backend::kvm).probe = probe_kvm(hypervisors(), cpus, options);
    entry_of(Backend::xen).probe = probe_xen(hypervisors(), cpus, options);
    prove_ipi(cpus);
    prove_kvm(options);
    prove_xen();
    chosen =
        choose_default_lock(hypervisors(), cpus, options, entry_of(Backend::kvm).probe, entry_of(Backend::xen).probe);
    log_summary();
}

const Probe& probe_of(Backend backend) noexcept { return entry_of(backend).probe; }

std::string_view unavailable_reason(Backend backend) noexcept {
    const auto& probe = entry_of(backend).probe;
    return runs(probe.availability) ? std::string_view{} : probe.fact.view();
}

std::string_view directed_yield_unavailable(Backend backend) noexcept {
    if (backend == Backend::native || backend == Backend::any)
        return "spins only: nothing tells it which vCPU is preempted";
    if (backend == Backend::ipi)
        return "no hypervisor tells it which vCPU is preempted";
    if (const auto reason = unavailable_reason(backend); !reason.empty())
        return reason;
    if (backend == Backend::xen)
        return steal_time::registered() != 0 ? "" : "no CPU has a runstate area";
    static constinit FixedText<100> fact;
    const auto* kvm = hypervisors().find(HypervisorKind::kvm);
    const auto leaf = (kvm == nullptr ? 0 : kvm->base) + cpuid_abi::kKvmFeatures;
    for (const auto& [feature, label] :
         {std::pair{KvmFeature::STEAL_TIME, "STEAL_TIME"}, std::pair{KvmFeature::PV_SCHED_YIELD, "PV_SCHED_YIELD"}}) {
        if (hypervisors().has(feature))
            continue;
        fact.set("no %s: leaf 0x%08x EAX=0x%08x", label, leaf, hypervisors().kvm_features);
        return fact.view();
    }
    if (steal_time::registered() == 0)
        return "no CPU has a steal-time page";
    return Kvm::can_yield() ? "" : "no hypercall was proved: kicks go by remote-read IPI";
}

std::string_view kick_transport(Backend backend) noexcept {
    const auto& entry = entry_of(backend);
    return entry.count == 0 ? std::string_view{} : entry.transports[entry.current.load(std::memory_order_relaxed)];
}

std::uint32_t kick_transports(Backend backend) noexcept { return entry_of(backend).count; }

void use_kick_transport(Backend backend, std::uint32_t n) noexcept {
    auto& entry = entry_of(backend);
    if (n >= entry.count)
        return;
    entry.current.store(n, std::memory_order_relaxed); // a switch of its own, like the next
    if (backend == Backend::kvm)
        Kvm::kick_transport.store(entry.kvm_kicks[n], std::memory_order_relaxed);
}

const DefaultLock& default_lock() noexcept { return chosen; }
EventChannelCounts event_channel_counts() noexcept { return {Xen::polls(), Xen::sends()}; }

void reset_cpu(CpuId cpu) noexcept {
    Ipi::reset_cpu(cpu);
    Kvm::reset_cpu(cpu);
    Xen::reset_cpu(cpu);
}

} // namespace spinkick::paravirt
