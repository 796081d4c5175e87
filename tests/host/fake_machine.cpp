// SPDX-License-Identifier: BSD-2-Clause
#include "tests/host/fake_machine.hpp"

#include <cstdlib>

#include "kernel/clock.hpp"
#include "kernel/console.hpp"
#include "kernel/machine.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/test/environment.hpp"

namespace spinkick {

test::FakeMachine test::fake_machine;

Nanoseconds clock::now() noexcept { return {test::fake_machine.now_ns += 1000}; }

std::uint32_t machine::cpu_count() noexcept { return test::fake_machine.cpus; }

CpuId machine::online_cpu(std::uint32_t n) noexcept { return CpuId{n}; }
std::uint64_t machine::lock_event(CpuId, sync::LockEvent) noexcept { return test::fake_machine.lock_events; }
void machine::relax() noexcept {}
void machine::set_tick(void (*)() noexcept, Nanoseconds) noexcept {}
void machine::idle_unless(bool (*done)(void*), void* argument) noexcept {
    if (!done(argument))
        std::abort(); // nobody will ever type again: a test whose script does not end in `quit`
}
void workers::set_look_hook(void (*hook)() noexcept) noexcept { test::fake_machine.look_hook = hook; }
void workers::set_watchdog(Nanoseconds) noexcept {}
void workers::dump() noexcept {}

std::optional<char> console_read() noexcept {
    auto& input = test::fake_machine.console_input;
    static std::uint32_t looks = 0;
    if (input.empty()) {
        if (test::fake_machine.byte_after_looks == 0 || ++looks <= test::fake_machine.byte_after_looks)
            return std::nullopt;
        looks = 0;
        return '\n';
    }
    const char byte = input.front();
    input.erase(0, 1);
    return byte;
}

namespace {
const CommandLine* line_in_use = nullptr;
}
const CommandLine& options::command_line() noexcept { return *line_in_use; }
void options::use(const CommandLine& line) noexcept { line_in_use = &line; }

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
