// SPDX-License-Identifier: BSD-2-Clause
//
// The steps from the loader's entry to the tests, on a machine with rings and a local APIC.
#include "kernel/boot_steps.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "arch/x86/acpi.hpp"
#include "arch/x86/cpu_features.hpp"
#include "arch/x86/cpuid.hpp"
#include "arch/x86/descriptors.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/low_memory.hpp"
#include "arch/x86/machine_steps.hpp"
#include "arch/x86/msr.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/paravirt.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "arch/x86/paravirt/xen_domain.hpp"
#include "arch/x86/paravirt/xen_error.hpp"
#include "arch/x86/paravirt/xen_memory_map.hpp"
#include "arch/x86/paravirt/xen_shutdown.hpp"
#include "arch/x86/paravirt/xen_start_ap.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/power.hpp"
#include "arch/x86/time_stamp.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/tsc.hpp"
#include "arch/x86/xen_console.hpp"
#include "arch/x86/xen_pv/xen_pv.hpp"
#include "boot/boot_info.hpp"
#include "boot/multiboot2_info.hpp"
#include "boot/pvh_info.hpp"
#include "drivers/console.hpp"
#include "drivers/xen_console.hpp"
#include "kernel/clock.hpp"
#include "kernel/command_line.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/tuning.hpp"
#include "kernel/test/monitor.hpp"
#include "kernel/test/registry.hpp"
#include "kernel/test/report.hpp"
#include "kernel/test/runner.hpp"

extern "C" const char image_begin[], image_end[], ap_upper_half[];
extern "C" std::uint64_t boot_pml4[];

namespace spinkick {
namespace steps {

using namespace x86;

namespace {

constinit std::uint32_t boot_protocol = 0;
constinit std::uint64_t boot_information = 0;
constinit boot::BootInfo info{};
constinit CommandLine parsed_line{};
constinit Tsc first_line{};                          ///< when it was out, before anybody knew the time
constinit const CommandLine* current_line = nullptr; ///< what the monitor has made of it
constinit acpi::Tables tables{};
constinit std::array<ApicId, kMaxCpus> cpu_ids{};
constinit std::uint32_t cpu_count = 0;
constinit smp::BringUp result_of_bring_up{};
constinit test::Verdict verdict = test::Verdict::error;
constinit bool has_verdict = false;

// The boot CPU's emergency stacks until its own ones are mapped.
struct alignas(16) EarlyStack {
    std::array<std::byte, 4096> bytes;
};
constinit std::array<EarlyStack, 3> early_stacks{};

std::uint64_t top(EarlyStack& stack) noexcept {
    return reinterpret_cast<std::uint64_t>(stack.bytes.data() + stack.bytes.size());
}

bool on_xen() noexcept { return paravirt::hypervisors().find(paravirt::HypervisorKind::xen) != nullptr; }

constexpr drivers::console::Device kXenConsole{
    .write = [](std::string_view bytes) noexcept { (void)drivers::xen_console::write(bytes); },
    .name = "Xen console_io",
    .read = drivers::xen_console::read};

/// Loader data, by the boot tables: the low 4 GiB.
std::optional<std::span<const std::byte>> map_for_parser(void*, std::uint64_t address, std::size_t size) noexcept {
    const auto* memory = paging::map_physical(address, size);
    if (memory == nullptr)
        return std::nullopt;
    return std::span{static_cast<const std::byte*>(memory), size};
}

constexpr boot::PhysicalReader kReader{map_for_parser, nullptr};

/// The loader says it; without its word (GRUB in an HVM guest) the number of the domain does.
bool is_initial_xen_domain() noexcept {
    if (xen_pv::is_active())
        return xen_pv::is_initial_domain(boot_information);
    if (boot_protocol == BOOT_PROTOCOL_PVH)
        return (boot::read_pvh_flags(boot_information, kReader) & paravirt::xen_abi::SIF_INITDOMAIN) != 0;
    std::uint32_t id = 0;
    return paravirt::xen_domain::read_own_id(id) && id == 0;
}

/// A dom0 may write to Xen's console; Xen keeps the UART from it. A domU has a ring, and may have a UART of the device
/// model, which somebody has then asked for. Returns why a domU has no console of its own.
xen_console::Lack choose_xen_console() noexcept {
    xen_console::Lack lack;
    if (!paravirt::xen_domain::is_initial()) {
        if (drivers::console::has_uart())
            return lack;
        lack = xen_console::use_ring(boot_information);
        if (lack.empty())
            return lack;
    }
    if (drivers::xen_console::write(""))
        drivers::console::use(kXenConsole);
    return lack;
}

bool ask_xen_for_memory() noexcept {
    std::array<paravirt::XenMemoryRange, 64> ranges{};
    const auto map = paravirt::xen_memory_map(ranges);
    if (map.faulted || map.result < 0) {
        log("boot: XENMEM_memory_map %s %s", map.faulted ? "faulted," : "gives",
            paravirt::xen_error_text(map.result).c_str());
        return false;
    }
    for (std::size_t i = 0; i < map.count; ++i)
        info.memory.add(ranges[i].base, ranges[i].size, boot::memory_type_of_e820(ranges[i].type));
    info.memory.clean();
    return true;
}

bool start_pv(CpuId cpu, ApicId) noexcept { return xen_pv::start_cpu(cpu, smp::stack_top_of(cpu), &percpu_of(cpu)); }

bool start_by_xen(CpuId cpu, ApicId id) noexcept {
    const auto vcpu = paravirt::xen_vcpu_of(id);
    percpu_of(cpu).xen_vcpu_id = vcpu;
    // Before it runs: Xen initialises no vCPU above 31 that has no place for its events.
    if (const auto place = paravirt::Xen::register_vcpu_info(cpu); !place.ok())
        log("smp: Xen vCPU %u: VCPUOP_register_vcpu_info gives %s", raw(vcpu), paravirt::xen_error_text(place).c_str());
    const auto result = paravirt::start_xen_vcpu(vcpu, reinterpret_cast<std::uint64_t>(ap_upper_half),
                                                 paging::phys_of_image(boot_pml4), has_nx());
    if (!result.ok())
        log("smp: Xen vCPU %u: %s gives %s", raw(vcpu), result.call, paravirt::xen_error_text(result.error).c_str());
    return result.ok();
}

/// The CPUs of the tables that can be addressed; the boot CPU is the first.
void list_cpus() noexcept {
    for (const auto id : tables.madt.cpus()) {
        if (raw(id) > 254 && !xen_pv::is_active() && !lapic::is_x2apic()) {
            log("smp: APIC id %u cannot be addressed without x2APIC (CPUID.1:ECX[21] is 0): left out", raw(id));
            continue;
        }
        cpu_ids[cpu_count++] = id;
    }
}

void measure_skew() noexcept {
    // A quiet host is done in microseconds. On a busy one each exchange waits for two of its threads, and what many of
    // them would add to the accuracy is not worth ten seconds of each boot.
    constexpr Nanoseconds kForAll = milliseconds(3000), kForOne = milliseconds(20);
    const Nanoseconds budget{std::max(kForOne.value, kForAll.value / machine::cpu_count())};
    for (std::uint32_t n = 1; n < machine::cpu_count(); ++n) {
        const auto cpu = machine::online_cpu(n);
        tsc::skew_prepare();
        if (!machine::start_work(cpu, {[](void*) { tsc::skew_follow(x86::this_cpu()); }, nullptr, nullptr}))
            continue;
        tsc::skew_lead(cpu, budget);
        const clock::Deadline deadline(seconds(3));
        while (!machine::is_idle(cpu) && !deadline.passed())
            machine::relax();
    }
}

} // namespace

void begin(std::uint32_t protocol, std::uint64_t information) noexcept {
    boot_protocol = protocol;
    boot_information = information;
    if (protocol == BOOT_PROTOCOL_XEN_PV)
        xen_pv::begin(information);
    smp::init_boot_cpu_block();
    descriptors::load_this_cpu(CpuId{0}, &percpu(), {top(early_stacks[0]), top(early_stacks[1]), top(early_stacks[2])});
    traps::init();
    traps::load_this_cpu();
    machine_steps::install_handlers();
    tsc::start();
    paravirt::detect(); // CPUID only: it decides where the first line goes
}

bool start_console() noexcept {
    // Without any console the run goes on: the verdict still leaves by the exit device.
    if (!xen_pv::is_active()) // its ports belong to Xen
        (void)drivers::console::init();
    xen_console::Lack lack;
    if (on_xen()) {
        paravirt::xen_domain::set_initial(is_initial_xen_domain());
        power::set_hypervisor_method(paravirt::xen_shutdown);
        lack = choose_xen_console();
    }
    log("spinkick: boot: %s", protocol_name());
    first_line = rdtsc();
    if (!lack.empty())
        log("xen: no console ring: %s; lines go to: %s", lack.c_str(), drivers::console::name());
    return true;
}

bool read_boot_information() noexcept {
    if (xen_pv::is_active()) {
        xen_pv::read_start_info(boot_information, info);
        return true;
    }
    ErrorText error;
    const bool good = boot_protocol == BOOT_PROTOCOL_MULTIBOOT2
                          ? boot::read_multiboot2_info(boot_information, kReader, info, error)
                          : boot::read_pvh_info(boot_information, kReader, info, error);
    if (!good)
        log("boot: %s", error.c_str()); // what was read before the damage may do
    if (info.memory.empty() && on_xen())
        return ask_xen_for_memory();
    if (info.memory.empty())
        log("boot: the loader gave no memory map");
    return !info.memory.empty();
}

bool read_command_line() noexcept {
    ErrorText error;
    if (!parse_command_line(info.command_line_view(), parsed_line, error)) {
        verdict = test::report_bad_input(error.view());
        has_verdict = true;
        return false;
    }
    for (const auto word : parsed_line.ignored.items())
        log("# ignored word of the loader: %.*s", static_cast<int>(word.size()), word.data());
    apply_tuning(parsed_line);
    workers::set_watchdog(milliseconds(parsed_line.watchdog_ms));
    return true;
}

bool take_memory() noexcept {
    info.image = {paging::phys_of_image(image_begin), static_cast<std::uint64_t>(image_end - image_begin)};
    xen_console::before_final_tables();
    paging::init();
    xen_console::after_final_tables();
    return true;
}

bool find_hypervisor() noexcept {
    cpu_features::note_this_cpu(CpuId{0});
    paravirt::init_this_cpu(parsed_line.evtchn);
    return true;
}

bool read_tables() noexcept {
    if (xen_pv::is_active()) {
        // No tables: Xen knows the vCPUs. Their numbers stand in the place of APIC ids, which they have not.
        tables.madt.count = tables.madt.found = xen_pv::count_vcpus();
        for (std::uint32_t i = 0; i < tables.madt.count; ++i)
            tables.madt.ids[i] = ApicId{i};
        return true;
    }
    acpi::read(info, initial_apic_id(), tables);
    return true;
}

bool start_clock() noexcept {
    const auto offered = paravirt::pvclock::frequency();
    if (!tsc::calibrate({offered.khz, offered.source}, tables.pm_timer_port))
        log("clock: nothing tells the TSC frequency (no paravirtual clock, CPUID leaf, PM timer or PIT): times are by "
            "an assumed 1 GHz");
    choose_time_stamp();
    const auto since_first_line = clock::to_nanoseconds(rdtsc() - first_line);
    log("# entry to first line: %llu us",
        static_cast<unsigned long long>((clock::now() - since_first_line).value / 1000));
    return true;
}

bool start_interrupt_controller() noexcept {
    if (xen_pv::is_active()) {
        xen_pv::bind_this_cpu();
        return true;
    }
    lapic::mask_8259s();
    constexpr std::uint64_t kBaseMask = 0x000ffffffffff000;
    if (!lapic::init(rdmsr(Msr::IA32_APIC_BASE) & kBaseMask))
        return false;
    lapic::enable_this_cpu();
    return lapic::calibrate_timer();
}

bool start_processors() noexcept {
    list_cpus();
    const auto wanted = cpu_count * smp::bytes_per_cpu();
    const auto arena = low_memory::find_arena(info, wanted, smp::bytes_per_cpu());
    if (arena.size < smp::bytes_per_cpu()) {
        ErrorText error;
        error.set(
            "memory: %llu KiB usable, no room for the %llu KiB of one CPU's stacks: give the machine more (-m 32)",
            static_cast<unsigned long long>(info.memory.usable_bytes() / 1024),
            static_cast<unsigned long long>(smp::bytes_per_cpu() / 1024));
        verdict = test::report_bad_input(error.view());
        has_verdict = true;
        return false;
    }
    const auto placed = smp::place_cpus({cpu_ids.data(), cpu_count}, arena.base, arena.size);
    if (placed < cpu_count)
        log("smp: memory for %u of %u CPUs", placed, cpu_count);
    smp::finish_boot_cpu();

    const auto trampoline = low_memory::find_trampoline_page(info);
    if (trampoline == 0 && placed > 1 && !on_xen())
        log("smp: no usable page below 640 KiB for the AP start code: the boot CPU runs alone");
    result_of_bring_up = smp::start_all(placed, trampoline,
                                        xen_pv::is_active() ? start_pv
                                        : on_xen()          ? start_by_xen
                                                            : nullptr,
                                        parsed_line.drop_starts);
    const auto& up = result_of_bring_up;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(up.missing, up.missing_ids.size()); ++i)
        log("smp: CPU with APIC id %u did not start", raw(up.missing_ids[i]));
    log("# %u of %u CPUs online in %llu us (%u started more than once)", up.online, up.found,
        static_cast<unsigned long long>(up.elapsed.value / 1000), up.retried);
    if (const auto features = cpu_features::summary(); features.differing != 0)
        log("# WARN CPUID: %u CPUs differ from the boot CPU: CPU %u has %s=0x%08x, not 0x%08x", features.differing,
            raw(features.first), cpu_features::kWords[features.difference.word].name, features.difference.other,
            features.difference.boot);
    measure_skew();
    return true;
}

bool prove_back_ends() noexcept {
    if (!parsed_line.list) {
        paravirt::log_hypervisors(machine::cpu_count());
        if (!parsed_line.compact)
            paravirt::log_leaves();
        paravirt::prove_and_choose({parsed_line.paravirt, parsed_line.kick}, machine::cpu_count());
    }
    return true;
}

bool run_tests() noexcept {
    const auto run = parsed_line.monitor ? test::run_monitor : test::run;
    verdict = run(test::Registry::linked(), parsed_line);
    has_verdict = true;
    return true;
}

void end_with_error() noexcept {
    if (!has_verdict)
        (void)test::report_bad_input("the machine cannot run this kernel: see the lines above");
    machine::power_off(machine::Exit::error);
}

void end() noexcept {
    // Asleep meanwhile: nothing that is counted happens.
    machine::set_tick([]() noexcept {}, milliseconds(20));
    for (const clock::Deadline linger(milliseconds(parsed_line.linger_ms)); !linger.passed();)
        machine::idle_unless([](void*) { return false; }, nullptr);
    machine::set_tick(nullptr, milliseconds(20));
    switch (verdict) {
    case test::Verdict::pass:
        machine::power_off(machine::Exit::pass);
    case test::Verdict::fail:
        machine::power_off(machine::Exit::fail);
    case test::Verdict::skip:
        machine::power_off(machine::Exit::skip);
    case test::Verdict::error:
        break;
    }
    machine::power_off(machine::Exit::error);
}

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

} // namespace steps

const CommandLine& options::command_line() noexcept {
    return steps::current_line != nullptr ? *steps::current_line : steps::parsed_line;
}
void options::use(const CommandLine& line) noexcept { steps::current_line = &line; }
void x86::machine_steps::init_this_cpu() noexcept {
    cpu_features::note_this_cpu(this_cpu());
    paravirt::init_this_cpu();
    if (xen_pv::is_active())
        xen_pv::bind_this_cpu();
}
const x86::smp::BringUp& x86::machine_steps::bring_up() noexcept { return steps::result_of_bring_up; }
const x86::acpi::Tables& x86::machine_steps::acpi_tables() noexcept { return steps::tables; }

} // namespace spinkick
