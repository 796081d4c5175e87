// SPDX-License-Identifier: BSD-2-Clause
//
// kernel/test/environment.hpp on this machine: which back ends can run, and the record that says where a run took
// place.
#include "kernel/test/environment.hpp"

#include <array>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/machine_steps.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/paravirt.hpp"
#include "arch/x86/paravirt/xen_events.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/smp.hpp"
#include "arch/x86/time_stamp.hpp"
#include "arch/x86/tsc.hpp"
#include "arch/x86/xen_pv/active.hpp"
#include "drivers/console.hpp"
#include "kernel/boot_steps.hpp"
#include "kernel/json.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/counters.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/tuning.hpp"
#include "version.hpp"

namespace spinkick::test {
namespace {

using namespace x86;

constexpr std::uint32_t kMostIds = 64;
constinit std::array<char, 12288> storage{};

using Text = FixedText<64>;

void add_vendor_and_model(JsonLine& json) noexcept {
    const auto leaf = cpuid(0);
    std::array<char, 13> vendor_text{};
    __builtin_memcpy(vendor_text.data(), &leaf.ebx, 4);
    __builtin_memcpy(vendor_text.data() + 4, &leaf.edx, 4);
    __builtin_memcpy(vendor_text.data() + 8, &leaf.ecx, 4);
    json.text("cpu_vendor", vendor_text.data());
    std::array<char, 49> model{};
    if (max_extended_leaf() >= 0x80000004) {
        for (std::uint32_t i = 0; i < 3; ++i) {
            const auto part = cpuid(0x80000002 + i);
            __builtin_memcpy(model.data() + i * 16, &part, 16);
        }
    }
    const char* begin = model.data();
    while (*begin == ' ') // Intel pads on the left
        ++begin;
    json.text("cpu_model", begin);
}

void add_hypervisors(JsonLine& json) noexcept {
    const auto& found = paravirt::hypervisors();
    json.begin_list("hypervisors");
    for (const auto& leaves : found.all()) {
        json.begin_object();
        json.text("name", leaves.name()).number("base", leaves.base).number("max", leaves.max_leaf);
        json.end();
    }
    json.end();
    if (found.find(paravirt::HypervisorKind::kvm) != nullptr)
        json.number("kvm_features", found.kvm_features).number("kvm_hints", found.kvm_hints);
    if (found.find(paravirt::HypervisorKind::xen) != nullptr)
        json.number("xen_version", found.xen_version).text("evtchn", name(paravirt::xen_events::form()));
}

void add_cpus(JsonLine& json) noexcept {
    json.number("cpus", machine::cpu_count()).number("cpus_found", machine::cpus_found());
    json.begin_list("ids");
    for (std::uint32_t n = 0; n < machine::cpu_count() && n < kMostIds; ++n) {
        const auto& block = percpu_of(machine::online_cpu(n));
        const bool xen = paravirt::hypervisors().find(paravirt::HypervisorKind::xen) != nullptr;
        json.tuple(std::int64_t{raw(block.cpu)}, std::int64_t{raw(block.apic_id)},
                   xen ? std::int64_t{raw(block.xen_vcpu_id)} : -1);
    }
    json.end();
}

void add_back_ends(JsonLine& json) noexcept {
    struct Named {
        const char* name;
        Backend backend;
    };
    constexpr std::array kBackends = {Named{"native", Backend::native}, Named{"ipi", Backend::ipi},
                                      Named{"kvm", Backend::kvm}, Named{"xen", Backend::xen}};
    json.begin_object("backends");
    for (const auto& named : kBackends) {
        const auto reason = paravirt::unavailable_reason(named.backend);
        json.text(named.name, reason.empty() ? "ok" : reason);
    }
    json.end();
    json.begin_object("kick");
    for (const auto& named : kBackends)
        if (const auto transport = paravirt::kick_transport(named.backend); !transport.empty())
            json.text(named.name, transport);
    json.end();
    if (options::command_line().directed_yield == sync::YieldMethod::off)
        return;
    json.begin_object("yield");
    for (const auto& named : kBackends) {
        const auto reason = paravirt::directed_yield_unavailable(named.backend);
        json.text(named.name, reason.empty() ? "ok" : reason);
        if (!reason.empty())
            log("# directed_yield=%s has no effect on %s: %.*s", name(options::command_line().directed_yield).data(),
                named.name, static_cast<int>(reason.size()), reason.data());
    }
    json.end();
}

} // namespace

std::string_view backend_unavailable_reason(Backend backend) noexcept { return paravirt::unavailable_reason(backend); }

void emit_context_record() noexcept {
    JsonLine json(storage, "context");
    json.number("schema", 1).text("version", SPINKICK_VERSION).text("preset", SPINKICK_PRESET);
#if defined(__clang__)
    json.text("compiler", "clang " __clang_version__);
#else
    json.text("compiler", "g++ " __VERSION__);
#endif
    json.text("boot", steps::protocol_name()).text("console", drivers::console::name());
    add_hypervisors(json);
    add_vendor_and_model(json);
    add_cpus(json);
    json.text("apic", xen_pv::is_active() ? "none" : lapic::is_x2apic() ? "x2APIC" : "xAPIC");
    json.number("tsc_khz", tsc::khz()).text("tsc_source", tsc::source()).flag("tsc_invariant", has_invariant_tsc());
    json.text("clock", detail::follows_xen_time ? "pvclock" : "tsc"); // what time stamps are
    const auto& lock = paravirt::default_lock();
    json.text("default_lock", lock.lock).text("default_lock_backend", lock.backend);
    json.text("default_lock_reason", lock.reason.view());
    add_back_ends(json);
    const auto& line = options::command_line();
    json.number("spin_threshold", sync::tuning.spin_threshold.load(std::memory_order_relaxed));
    json.text("relax", name(line.relax)).text("directed_yield", name(line.directed_yield));
    json.number("seed", line.seed).number("watchdog_ms", workers::watchdog().value / 1'000'000);
    json.text("command_line", line.view());
    (void)json.emit(); // a record that did not fit has said so

    if (machine::cpu_count() > 1) {
        const auto& up = machine_steps::bring_up();
        JsonLine bringup(storage, "bringup");
        bringup.number("cpus", up.online).number("first_to_last_ns", up.elapsed.value);
        bringup.number("per_ap_ns", up.elapsed.value / (up.online > 1 ? up.online - 1 : 1));
        bringup.number("retries", up.retried).number("missing", up.missing);
        (void)bringup.emit();
    }
    if (!line.compact) {
        // One record: a line for each CPU was half of what a boot of 64 CPUs prints.
        JsonLine record(storage, "skew");
        record.begin_list("cpus");
        for (std::uint32_t n = 1; n < machine::cpu_count() && n < kMostIds; ++n) {
            const auto cpu = machine::online_cpu(n);
            if (const auto skew = tsc::skew_of(cpu); skew.measured)
                record.tuple(std::int64_t{raw(cpu)}, skew.ticks, static_cast<std::int64_t>(skew.error_ticks));
        }
        record.end();
        (void)record.emit();
    }
}

void emit_hypercall_record() noexcept {
    if (!paravirt::unavailable_reason(Backend::kvm).empty())
        return;
    const auto events = counters::Snapshot::take();
    static constinit std::array<char, 160> storage{};
    JsonLine json(storage, "hypercalls");
    json.number("kick_cpu", events[sync::LockEvent::kvm_kick_cpu]);
    json.number("sched_yield", events[sync::LockEvent::kvm_sched_yield]);
    (void)json.emit();
}

void report_machine_faults() noexcept {
    std::uint64_t lost = 0, repeated = 0;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n) { // statistics: no worker runs any more
        lost += percpu_of(machine::online_cpu(n)).lost_shadows;
        repeated += percpu_of(machine::online_cpu(n)).repeated_interrupts;
    }
    if (lost != 0)
        log("# WARN interrupt shadow lost %llu times: an interrupt was taken between STI and HLT, so a guest that "
            "halts "
            "as it should would sleep past its wake-up; the HLT was skipped",
            static_cast<unsigned long long>(lost));
    if (repeated != 0)
        log("# WARN interrupt repeated %llu times: a vector was delivered again before its EOI; the second one was "
            "dropped",
            static_cast<unsigned long long>(repeated));
}

} // namespace spinkick::test
