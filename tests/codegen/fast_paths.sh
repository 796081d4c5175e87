#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fast_paths.sh OBJECT: looks at the instructions from each function's entry to its first RET, which is the way of a lock that is free:
# one locked instruction to take (XCHG with memory locks by itself), none or one to release as its original has it, no call.
set -euo pipefail
object=$1

# function : locked instructions on the fast path
expected='tas_lock 1
tas_unlock 0
ticket_lock 1
ticket_unlock 0
queued_lock 1
queued_unlock 0
unfair_queued_lock 1
unfair_queued_unlock 0
debug_lock 1
debug_unlock 0
byte_lock 1
byte_unlock 1
pv_ticket_lock 1
pv_ticket_unlock 1
pv_queued_lock 1
pv_queued_unlock 1
pv_queued_2014_lock 1
pv_queued_2014_unlock 1
unfair_pv_queued_lock 1
unfair_pv_queued_unlock 1'

objdump -d --no-show-raw-insn "$object" | awk -v expected="$expected" '
BEGIN {
    count = split(expected, rows, "\n")
    for (i = 1; i <= count; ++i) { split(rows[i], f, " "); want[f[1]] = f[2] }
}
/^[0-9a-f]+ <.*>:$/ {
    name = $2; gsub(/[<>:]/, "", name)
    open = (name in want); locked = 0; instructions = 0
    next
}
open && /\t/ {
    ++instructions
    if ($0 ~ /\tlock / || ($0 ~ /\txchg / && $0 ~ /\(/)) ++locked
    if ($0 ~ /\tcall/) { print name ": a call on the fast path: " $0; bad = 1 }
    if ($0 ~ /\tret/) {
        open = 0; seen[name] = 1
        if (locked != want[name]) { print name ": " locked " locked instructions on the fast path, expected " want[name]; bad = 1 }
        printf "%-20s %d instructions, %d locked\n", name, instructions, locked
    }
}
END {
    for (name in want) if (!(name in seen)) { print name ": not found in the object"; bad = 1 }
    exit bad
}'
