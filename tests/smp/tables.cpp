// SPDX-License-Identifier: BSD-2-Clause
//
// boot.tables: what the firmware's tables say could be read whole. A damaged one does not stop a run; it makes it an
// error.
#include <array>

#include "arch/x86/acpi.hpp"
#include "arch/x86/machine_steps.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::smp_tests {
namespace {

void run(test::TestContext& context) {
    const auto& tables = x86::machine_steps::acpi_tables();
    if (tables.damaged != 0)
        return context.error("%u damaged tables: %s", tables.damaged, tables.first_damage.c_str());
    if (!tables.madt_found && !tables.mp_table_found)
        return context.skip("no MADT and no MP table: the boot CPU runs alone");
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "boot.tables", .claim = "the firmware's tables are whole and were read whole", .run = run}};
constinit const test::TestGroup tables_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(tables_group);

} // namespace spinkick::smp_tests
