// SPDX-License-Identifier: BSD-2-Clause
//
// Instructions that are allowed to fault. A table in the linker section .fixups pairs the address of such an
// instruction with the address to go on at; the trap handler looks it up for #UD, #GP and #PF before it panics, and
// hands the vector over in RAX and, for a #PF, CR2 in RDX. Used for MSRs that may not exist and for hypercall
// instructions that a hypervisor may refuse.
#pragma once

#include <cstdint>

namespace spinkick::x86 {

struct Fixup {
    std::uint64_t instruction; ///< virtual address of the instruction that may fault
    std::uint64_t landing;     ///< where execution goes on
};
static_assert(sizeof(Fixup) == 16, "FIXUP in asm writes two .quad");

/// To be pasted into an asm template: names the instruction at local label `from` and the landing label `to`. The flag
/// "?" puts the entry into the section group of the function around it, so that both are kept or dropped when the
/// linker folds inline functions.
#define X86_FIXUP(from, to) ".pushsection .fixups, \"a?\"; .balign 8; .quad " from ", " to "; .popsection\n"

/// What ended a call that was allowed to fault: 0 for none, else the exception vector, with CR2 for a #PF.
struct Fault {
    std::uint32_t vector = 0; ///< 6 #UD, 13 #GP, 14 #PF; meaningful if `happened`
    bool happened = false;
    std::uint64_t address = 0; ///< CR2
};

} // namespace spinkick::x86
