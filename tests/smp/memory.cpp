// SPDX-License-Identifier: BSD-2-Clause
//
// smp.memory: nothing is writable and executable, constants are read-only, page 0 and the guard pages are not there.
#include <array>

#include "arch/x86/cpuid.hpp"
#include "arch/x86/paging.hpp"
#include "kernel/test/test.hpp"

extern "C" const char boot_stack_guard[], image_begin[], text_begin[], text_end[], rodata_begin[], rodata_end[],
    data_begin[], data_end[];

namespace spinkick::smp_tests {
namespace {

using namespace x86;

struct Range {
    const char* name;
    const char* begin;
    const char* end;
    bool writable, executable;
};

void run(test::TestContext& context) {
    const std::array ranges = {Range{"text", text_begin, text_end, false, true},
                               Range{"rodata", rodata_begin, rodata_end, false, false},
                               Range{"data", data_begin, data_end, true, false}};
    const bool nx = has_nx();
    const char* const guard = boot_stack_guard;
    for (const auto& range : ranges) {
        for (const auto* page = range.begin; page < range.end; page += paging::kPageBytes) {
            if (page == guard)
                continue;
            const auto entry = paging::entry_of(reinterpret_cast<std::uint64_t>(page));
            const bool writable = (entry & paging::kEntryWritable) != 0;
            const bool executable = (entry & paging::kEntryNoExecute) == 0;
            if ((entry & paging::kEntryPresent) == 0)
                return context.fail("%s page %p is not mapped", range.name, static_cast<const void*>(page));
            if ((writable && !range.writable) || (range.executable && !executable) ||
                (nx && executable != range.executable))
                return context.fail("%s page %p has entry 0x%llx", range.name, static_cast<const void*>(page),
                                    static_cast<unsigned long long>(entry));
        }
    }
    if (paging::entry_of(0) != 0)
        return context.fail("page 0 is mapped");
    if (paging::entry_of(reinterpret_cast<std::uint64_t>(boot_stack_guard)) != 0 ||
        paging::entry_of(paging::kArenaBase) != 0)
        return context.fail("the guard page below the boot CPU's stack is mapped");
    if (nx)
        context.pass();
    else
        context.skip("no NX: CPUID 0x80000001 EDX bit 20 is 0, data stays executable");
}

constexpr std::array kTests = {
    test::Test{.name = "smp.memory_protection",
               .claim = "code is R-X, constants R--, data RW-; page 0 and guard pages are absent",
               .run = run}};
constinit const test::TestGroup memory_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(memory_group);

} // namespace spinkick::smp_tests
