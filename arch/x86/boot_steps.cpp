// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/boot_steps.hpp"

#include <array>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/descriptors.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/machine_steps.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/ipi.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/paravirt/steal_time.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/paravirt/xen_memory_map.hpp"
#include "arch/x86/paravirt/xen_shutdown.hpp"
#include "arch/x86/paravirt/xen_start_ap.hpp"
#include "arch/x86/paravirt/paravirt.hpp"
#include "arch/x86/percpu.hpp"
#include "kernel/test/environment.hpp"
#include "arch/x86/power.hpp"
#include "arch/x86/smp.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/tsc.hpp"
#include "drivers/console.hpp"
#include "drivers/xen_console.hpp"
#include "kernel/command_line.hpp"
#include "kernel/json.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/tuning.hpp"
#include "kernel/test/registry.hpp"
#include "kernel/test/report.hpp"
#include "kernel/test/runner.hpp"

extern "C" const char image_begin[], image_end[], ap_upper_half[];
extern "C" std::uint64_t boot_pml4[];

namespace spinkick::steps {

using namespace x86;

namespace {

constinit std::uint32_t boot_protocol = 0;
constinit std::uint64_t boot_information = 0;
constinit CommandLine parsed_line{};
constinit smp::BringUp bring_up{};
constinit test::Verdict verdict = test::Verdict::error;

// The boot CPU's emergency stacks until its own ones are mapped.
struct alignas(16) EarlyStack {
    std::array<std::byte, 4096> bytes;
};
constinit std::array<EarlyStack, 3> early_stacks{};

std::uint64_t top(EarlyStack& stack) noexcept { return reinterpret_cast<std::uint64_t>(stack.bytes.data() + stack.bytes.size()); }

const char* protocol_name() noexcept {
    switch (boot_protocol) {
    case BOOT_PROTOCOL_PVH:
        return "pvh";
    case BOOT_PROTOCOL_MULTIBOOT2:
        return "multiboot2";
    default:
        return "xen-pv";
    }
}

bool on_xen() noexcept { return paravirt::hypervisors().find(paravirt::HypervisorKind::xen) != nullptr; }

void write_to_xen(std::string_view bytes) noexcept { (void)drivers::xen_console::write(bytes); }

bool start_by_xen(CpuId, ApicId id) noexcept {
    const auto result = paravirt::start_xen_vcpu(paravirt::xen_vcpu_of(id), reinterpret_cast<std::uint64_t>(ap_upper_half),
                                                 paging::phys_of_image(boot_pml4), has_nx());
    if (!result.ok())
        log("smp: Xen vCPU %u: %s gives %lld", raw(paravirt::xen_vcpu_of(id)), result.call, static_cast<long long>(result.error));
    return result.ok();
}

} // namespace

void begin(std::uint32_t protocol, std::uint64_t information) noexcept {
    boot_protocol = protocol;
    boot_information = information;
    smp::init_boot_cpu_block();
    descriptors::load_this_cpu(CpuId{0}, &percpu(), {top(early_stacks[0]), top(early_stacks[1]), top(early_stacks[2])});
    traps::init();
    traps::load_this_cpu();
    tsc::start();
    paravirt::detect(); // CPUID only; decides where the first line goes
}

bool start_console() noexcept {
    bool found = drivers::console::init();
    if (on_xen() && drivers::xen_console::write("")) { // dom0: Xen keeps the UART
        drivers::console::use(write_to_xen, "Xen console_io");
        found = true;
    }
    log("spinkick: boot: %s", protocol_name());
    return found || true; // without any console the verdict still leaves by the exit device
}


bool read_boot_information() noexcept { return true; }
bool read_command_line() noexcept {
    const auto* si = reinterpret_cast<const std::uint64_t*>(boot_information);
    const char* cl = si[3] ? reinterpret_cast<const char*>(si[3]) : "";
    ErrorText error;
    if (!parse_command_line(cl, parsed_line, error)) { (void)test::report_bad_input(error.view()); return false; }
    sync::tuning.spin_threshold.store(parsed_line.spin_threshold, std::memory_order_relaxed);
    workers::set_watchdog(milliseconds(parsed_line.watchdog_ms));
    return true;
}
bool take_memory() noexcept { paging::init(); return true; }
bool find_hypervisor() noexcept { return true; }
bool read_tables() noexcept { return true; }
bool start_clock() noexcept {
    bool r = tsc::calibrate({paravirt::pvclock::frequency().khz, paravirt::pvclock::frequency().source}, 0x608); log("# tsc %lu khz %s", tsc::khz(), tsc::source()); return r; }
bool start_interrupt_controller() noexcept { if(!lapic::init(0xfee00000)) return false; lapic::enable_this_cpu(); lapic::calibrate_timer(); return true; }
bool start_processors() noexcept {
    static ApicId ids[8]; for (unsigned i=0;i<4;i++) ids[i]=ApicId{i*(on_xen()?2:1)};
    auto n = smp::place_cpus({ids,4}, 0x1000000, 0x1000000); smp::finish_boot_cpu();
    machine_steps::install_handlers();
    paravirt::Ipi::init();
    paravirt::init_this_cpu();
    bring_up = smp::start_all(n, 0x8000, on_xen() ? start_by_xen : nullptr); log("# online %u of %u in %lu ns, retried %u", bring_up.online, bring_up.found, bring_up.elapsed.value, bring_up.retried); return true; }
bool prove_back_ends() noexcept { paravirt::prove_and_choose({parsed_line.paravirt, parsed_line.kick}, machine::cpu_count()); return true; }
bool run_tests() noexcept { verdict = test::run(test::Registry::linked(), parsed_line); return true; }
void end_with_error() noexcept { machine::power_off(machine::Exit::error); }
void end() noexcept {
    machine::power_off(verdict == test::Verdict::pass ? machine::Exit::pass : verdict == test::Verdict::fail ? machine::Exit::fail : verdict == test::Verdict::skip ? machine::Exit::skip : machine::Exit::error);
}
} // namespace spinkick::steps

namespace spinkick::x86::machine_steps { void init_this_cpu() noexcept { paravirt::init_this_cpu(); } }
namespace spinkick::test {
std::string_view backend_unavailable_reason(Backend b) noexcept { return paravirt::unavailable_reason(b); }
void emit_context_record() noexcept {}
}
