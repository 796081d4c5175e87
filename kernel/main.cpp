// SPDX-License-Identifier: BSD-2-Clause
//
// From the loader to the verdict: a table of named steps. A step that cannot go on says why in one line, and the run
// ends as an error.
#include "kernel/boot_steps.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"

namespace spinkick {
namespace {

struct Step {
    const char* name;
    bool (*run)() noexcept;
};

constexpr Step kSteps[] = {
    {"console", steps::start_console},
    {"boot information", steps::read_boot_information},
    {"command line", steps::read_command_line},
    {"memory", steps::take_memory},
    {"hypervisor", steps::find_hypervisor},
    {"tables", steps::read_tables},
    {"clock", steps::start_clock},
    {"interrupt controller", steps::start_interrupt_controller},
    {"processors", steps::start_processors},
    {"back ends", steps::prove_back_ends},
    {"tests", steps::run_tests},
};

} // namespace
} // namespace spinkick

/// Called by boot/long_mode.S on the boot stack and the boot tables. `protocol` is one of BOOT_PROTOCOL_*,
/// `information` the physical address that the loader handed over.
extern "C" [[noreturn]] void kernel_entry(std::uint32_t protocol, std::uint64_t information) noexcept {
    using namespace spinkick;
    steps::begin(protocol, information);
    for (const auto& step : kSteps) {
        if (step.run())
            continue;
        log("spinkick: error: cannot go on after step \"%s\"", step.name);
        steps::end_with_error();
    }
    steps::end();
}
