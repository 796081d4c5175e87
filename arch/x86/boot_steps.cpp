// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/boot_steps.hpp"
#include "arch/x86/descriptors.hpp"
#include "arch/x86/machine_steps.hpp"
#include "arch/x86/lapic.hpp"
#include "arch/x86/paging.hpp"
#include "arch/x86/smp.hpp"
#include "arch/x86/traps.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/tsc.hpp"
#include "drivers/console.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/test.hpp"
#include "kernel/text.hpp"
#include "kernel/clock.hpp"
#include "kernel/test/current_test.hpp"
#include "arch/x86/paravirt/ipi.hpp"
namespace spinkick::x86::machine_steps { void init_this_cpu() noexcept {} }
namespace spinkick::steps {
using namespace x86;
alignas(16) constinit char t1[4096]{}, t2[4096]{}, t3[4096]{};
void begin(std::uint32_t protocol, std::uint64_t) noexcept {
    smp::init_boot_cpu_block();
    descriptors::load_this_cpu(CpuId{0}, &percpu(), {(std::uint64_t)t1+4096,(std::uint64_t)t2+4096,(std::uint64_t)t3+4096});
    traps::init(); traps::load_this_cpu(); machine_steps::install_handlers(); tsc::start(); (void)protocol;
}
bool start_console() noexcept { bool r = drivers::console::init(); log("spinkick: boot: pvh on %s", drivers::console::name()); return r; }
bool read_boot_information() noexcept { return true; }
bool read_command_line() noexcept { return true; }
bool take_memory() noexcept { paging::init(); log("paging ok"); return true; }
bool find_hypervisor() noexcept { return true; }
bool read_tables() noexcept { return true; }
bool start_clock() noexcept { bool r= tsc::calibrate({}, 0x608); log("tsc %lu khz %s", tsc::khz(), tsc::source()); return r; }
bool start_interrupt_controller() noexcept { if(!lapic::init(0xfee00000)) return false; lapic::enable_this_cpu(); lapic::calibrate_timer(); log("lapic id %u x2 %d", raw(lapic::this_id()), lapic::is_x2apic()); return true; }
bool start_processors() noexcept {
    static ApicId ids[8]; for (unsigned i=0;i<4;i++) ids[i]=ApicId{i};
    auto n = smp::place_cpus({ids,4}, 0x1000000, 0x1000000); smp::finish_boot_cpu(); log("placed %u", n);
    auto b = smp::start_all(n, 0x8000, nullptr); log("online %u of %u in %lu ns, retried %u", b.online, b.found, b.elapsed.value, b.retried); return true; }
bool prove_back_ends() noexcept { return true; }
extern "C" const test::TestGroup* const test_groups_begin[]; extern "C" const test::TestGroup* const test_groups_end[];
bool run_tests() noexcept {
    paravirt::Ipi::init();
    for (auto* g = test_groups_begin; g != test_groups_end; ++g) for (auto& t : (*g)->tests) {
        if (t.on_request || t.needs == test::Backend::kvm || t.needs == test::Backend::xen) continue;
        test::TestContext c(1); char b[100]; TextBuffer tb(b); tb.append(t.name); tb.append("/"); tb.append(t.lock); tb.append("/"); tb.append(t.backend);
        test::set_current_test(tb.view());
        auto t0 = clock::now(); t.run(c); log("%s -> %u %s (%lu us)", b, (unsigned)c.status(), c.reason(), (clock::now()-t0).value/1000);
    }
    return true; }
void end_with_error() noexcept { machine::power_off(machine::Exit::error); }
void end() noexcept { machine::power_off(machine::Exit::pass); }
}
