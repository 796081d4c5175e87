#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# image.sh CLAIM IMAGE: one claim about the machine code or the ELF file of the image.
set -euo pipefail
claim=$1
image=$2

fail() {
    echo "$claim: $*"
    exit 1
}

disassemble() { objdump -d -C --no-show-raw-insn "$image"; }

case $claim in
vector_registers)
    # Nobody saves them: an interrupt in between would change them.
    if disassemble | grep -E '%([xyz]mm|mm[0-7]|st\b)'; then fail "vector or x87 registers in the image"; fi
    ;;
segments)
    readelf -lW "$image" | grep -E '^ +LOAD' | grep -q 'RWE' && fail "a segment is writable and executable"
    readelf -lW "$image" | grep -E 'GNU_STACK' | grep -q 'E ' && fail "the stack is executable"
    while read -r address size; do
        ((address >= 0x100000)) || fail "a segment is loaded at $address, below 1 MiB"
    done < <(readelf -lW "$image" | awk '$1 == "LOAD" { print $4, $6 }')
    ((address + size - 0x200000 <= 4 * 1024 * 1024)) || fail "the image with .bss ends at $((address + size)), more than 4 MiB above 2 MiB"
    ;;
privileged)
    # Instructions that a Xen PV guest cannot execute as they are, and the places that may have them. Locks get the mask from their back
    # end, inlined, and with it CLI and STI; everything else has a home.
    disassemble | awk '
    /^[0-9a-f]+ <.*>:$/ { name = $0; sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name); next }
    {
        insn = $2
        mask = (insn ~ /^(cli|sti|hlt|pushf|popf)/)
        cr8 = ($0 ~ /%cr8/)
        call = (insn ~ /^vmm?call$/)
        msr = (insn ~ /^wrmsr$/)
        table = (insn ~ /^(rdmsr|lgdt|lidt|ltr|invlpg|iretq|lretq|lret|in|out|insb|outsb|swapgs|wbinvd|invd)$/ || $0 ~ /%cr[0-7]/)
        if (insn == "rep") table = ($0 ~ /outsb|insb/)
        if (!(mask || cr8 || call || msr || table)) next
        home = (name ~ /^_ZN8spinkick8paravirt/ || # a name that is too long for objdump
                name ~ /spinkick::(x86|paravirt|drivers|machine|clock|faults|steps)::/ ||
                name ~ /^(no_long_mode|enter_long_mode|upper_half|in_long_mode|ap_upper_half|ap_in_long_mode|trap_common|trap_dispatch|sti_hlt|sti_hlt_at_hlt|ap_entry|kernel_entry|run_rescuable|rescue_landing)/)
        # Back ends are inlined into the locks and into the tests of them, and the console masks interrupts.
        inlined = (name ~ /paravirt::/ || name ~ /^spinkick::(console_write_line|paravirt_tests|lock_tests|bench)/)
        if (home || ((mask || cr8 || call || msr) && inlined)) next
        print name ": " $0
        bad = 1
    }
    END { exit bad }' || fail "privileged instructions outside of the listed places"
    ;;
notes)
    count=$(readelf -nW "$image" 2>/dev/null | grep -cE '^ +Xen .*0x00000012' || true)
    [[ $count == 1 ]] || fail "$count notes of type 18 (PVH entry), expected 1"
    readelf -lW "$image" | awk '$1 == "NOTE" && $NF != "0x4" { bad = 1 } END { exit bad }' || fail "PT_NOTE is not aligned to 4"
    entry=$(readelf -hW "$image" | awk '/Entry point/ { print $NF }')
    inside=no
    while read -r address size; do
        if ((entry >= address && entry < address + size)); then inside=yes; fi
    done < <(readelf -lW "$image" | awk '$1 == "LOAD" { print $3, $6 }')
    [[ $inside == yes ]] || fail "the ELF entry $entry is in no segment"
    # multiboot2: magic e85250d6, 8-aligned, header wholly in the first 4 KiB.
    offset=$(head -c 4096 "$image" | od -An -v -tx4 -w4 | grep -nE '^ *e85250d6' | head -n 1 | cut -d: -f1 || true)
    [[ -n $offset ]] || fail "no multiboot2 header in the first 4 KiB"
    (((offset - 1) * 4 % 8 == 0)) || fail "the multiboot2 header is not 8-aligned"
    head -c 8192 "$image" | od -An -v -tx4 -w4 | grep -qE '^ *1badb002' && fail "a multiboot1 header: QEMU would refuse the ELF64"
    if command -v grub-file >/dev/null; then grub-file --is-x86-multiboot2 "$image" || fail "grub-file does not accept the image"; fi
    ;;
runtime)
    # Hosted libstdc++ headers hide calls of these; and no global constructor may exist.
    if nm "$image" | grep -E ' (__cxa_|_Unwind|__throw|__gxx|malloc|free$|_Zn[wa]|_Zd[la])'; then fail "symbols of a hosted runtime"; fi
    if objdump -h "$image" | awk '$2 ~ /^\.(init_array|ctors)/ && $3 !~ /^0+$/ { found = 1 } END { exit !found }'; then
        fail "global constructors"
    fi
    ;;
spin_hint)
    # A loop that only looks takes the memory, and on an overcommitted host the time, of those it waits for.
    disassemble | awk -f "$(dirname "$0")/bare_loops.awk" || fail "loops that wait without a spin hint"
    ;;
sti_hlt)
    # The only STI that a wait relies on is followed by HLT, and there is one such place.
    count=$(disassemble | grep -cE '\ssti *$')
    pairs=$(disassemble | grep -A1 -E '^[0-9a-f]+ <sti_hlt>:' | grep -cE '\ssti *$')
    halts=$(disassemble | awk '/^[0-9a-f]+ <.*>:$/ { name = $2 } /\thlt/ { print name }' | sort -u)
    [[ $pairs == 1 ]] || fail "sti_hlt does not begin with STI ($count STI in the image)"
    disassemble | grep -A1 -E '^[0-9a-f]+ <sti_hlt_at_hlt>:' | grep -qE '\shlt *$' || fail "STI of sti_hlt is not followed by HLT"
    # An STI right before any other HLT would be a second such place.
    disassemble | grep -A1 -E '\ssti *$' | grep -qE '\shlt *$' && fail "an STI; HLT outside of sti_hlt: ${halts//$'\n'/ }"
    ;;
*)
    echo "image.sh: unknown claim $claim"
    exit 2
    ;;
esac
echo "$claim: ok"
