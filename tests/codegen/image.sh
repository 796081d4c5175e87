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
vmm_loaders)
    # What the loader of Firecracker and Cloud Hypervisor (rust-vmm's linux-loader, x86_64/elf) demands of a kernel that it boots by PVH.
    # field OFFSET SIZE: a little-endian number of the file.
    field() { od -An -v -tu"$2" -j "$1" -N "$2" "$image" | tr -d ' '; }
    [[ $(head -c 4 "$image" | od -An -tx1 | tr -d ' ') == 7f454c46 && $(field 4 1) == 2 && $(field 5 1) == 1 ]] ||
        fail "not a little-endian ELF64"
    headers=$(field 32 8) header_bytes=$(field 54 2) count=$(field 56 2)
    ((header_bytes == 56)) || fail "program headers of $header_bytes bytes, 56 is wanted"
    ((headers >= 64)) || fail "program headers at $headers, inside the ELF header"
    # As an unsigned number: e_entry is in the upper half, where a signed one would be negative.
    entry=$(od -An -v -tx8 -j 24 -N 8 "$image" | tr -d ' ')
    [[ $entry > 00000000000fffff ]] || fail "the ELF entry 0x$entry is below 1 MiB"
    file_bytes=$(stat -Lc %s "$image") pvh='' loads=()
    for ((i = 0; i < count; i++)); do
        at=$((headers + i * header_bytes))
        type=$(field $at 4) offset=$(field $((at + 8)) 8) physical=$(field $((at + 24)) 8)
        in_file=$(field $((at + 32)) 8) in_memory=$(field $((at + 40)) 8) align=$(field $((at + 48)) 8)
        ((offset + in_file <= file_bytes)) || fail "program header $i reaches beyond the file"
        case $type in
        1)
            ((physical >= 0x100000)) || fail "a segment at physical $physical, below 1 MiB"
            ((in_memory >= in_file)) || fail "a segment with less memory than file"
            loads+=("$physical $in_memory")
            ;;
        4)
            # Notes are walked with the segment's own alignment; only the name and the type count, and the first match.
            ((align != 0 && (align & (align - 1)) == 0)) || fail "PT_NOTE is aligned to $align"
            for ((note = offset; note < offset + in_file; )); do
                name_bytes=$(field $note 4) data_bytes=$(field $((note + 4)) 4) note_type=$(field $((note + 8)) 4)
                if ((note_type == 18 && name_bytes == 4)) && [[ $(field $((note + 12)) 4) == 7234904 ]]; then # "Xen\0"
                    ((data_bytes == 4 || data_bytes == 8)) || fail "the PVH note has $data_bytes bytes"
                    pvh=$(field $((note + 12 + (4 + align - 1) / align * align)) 4)
                    break
                fi
                note=$((note + 12 + (name_bytes + align - 1) / align * align + (data_bytes + align - 1) / align * align))
            done
            ;;
        esac
    done
    [[ -n $pvh ]] || fail "no PVH note by the loader's walk"
    inside=no
    for load in "${loads[@]}"; do
        read -r physical size <<<"$load"
        if ((pvh >= physical && pvh < physical + size)); then inside=yes; fi
    done
    [[ $inside == yes ]] || fail "the PVH entry $pvh is in no segment"
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
