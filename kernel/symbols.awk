# SPDX-License-Identifier: BSD-2-Clause
#
# Turns `nm -C -n IMAGE` into the assembly of the symbol table (kernel/symbols.hpp). Without input: an empty table for the first
# link.
BEGIN {
    print "    .section .symbols, \"a\""
    print "    .globl symbol_table, symbol_table_end, symbol_names"
    count = 0
}
($2 == "t" || $2 == "T" || $2 == "w" || $2 == "W") {
    name = $0
    sub(/^[0-9a-f]+ [tTwW] /, "", name)
    gsub(/spinkick::/, "", name)
    gsub(/\(anonymous namespace\)::/, "", name)
    sub(/\(.*/, "", name)                       # the argument list: too long for a backtrace
    gsub(/[\\"]/, "", name)
    if (name == "" || name ~ /^(text_begin|text_end|rodata_begin|image_begin)$/) next
    names[count] = substr(name, 1, 120)
    addresses[count++] = $1
}
END {
    print "    .balign 8"
    print "symbol_table:"
    for (i = 0; i < count; ++i)
        printf "    .long 0x%s - 0xffffffff80000000, name%d - symbol_names\n", addresses[i], i
    print "symbol_table_end:"
    print "symbol_names:"
    for (i = 0; i < count; ++i)
        printf "name%d: .asciz \"%s\"\n", i, names[i]
    print "    .byte 0"
}
