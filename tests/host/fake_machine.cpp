// SPDX-License-Identifier: BSD-2-Clause
#include "tests/host/fake_machine.hpp"

#include "kernel/clock.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/test/environment.hpp"

namespace spinkick {

test::FakeMachine test::fake_machine;

Nanoseconds clock::now() noexcept { return {test::fake_machine.now_ns += 1000}; }

std::uint32_t machine::cpu_count() noexcept { return test::fake_machine.cpus; }

void machine::run_here(const Work& work) noexcept {
    bool completed = true;
    try {
        work.fn(work.argument);
    } catch (const test::ThrownOut&) {
        completed = false;
    }
    work.finished(work.argument, completed);
}

std::string_view test::backend_unavailable_reason(Backend backend) noexcept {
    const auto found = fake_machine.unavailable.find(backend);
    return found == fake_machine.unavailable.end() ? std::string_view{} : found->second;
}

void test::emit_context_record() noexcept { console_write_line("# json {\"type\":\"context\"}"); }
void test::report_machine_faults() noexcept {}
void test::emit_hypercall_record() noexcept {}

} // namespace spinkick
