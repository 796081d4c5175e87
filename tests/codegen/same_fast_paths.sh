#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# same_fast_paths.sh OBJECT OTHER: each function of OBJECT has the same code bytes in OTHER from its entry to its first RET. Only the
# distance of a jump into the slow path, which may be longer on one side, and of a datum, which the linker fills in, are left out.
set -euo pipefail

fast_paths() {
    objdump -d "$1" | awk '
    /^[0-9a-f]+ <.*_(lock|unlock)>:$/ { name = $2; gsub(/[<>:]/, "", name); open = 1; next }
    open && /\t/ {
        split($0, column, "\t")
        bytes = column[2]; text = column[3]
        gsub(/ +$/, "", bytes)
        if (text ~ /^j/) { sub(/ .*/, "", text); bytes = text }            # a jump: its kind
        if (text ~ /rip/) { split(bytes, byte, " "); bytes = byte[1] " " byte[2] " rip" }
        print name ": " bytes
        if (text ~ /^ret/) open = 0
    }' | sort -s -t: -k1,1
}

# Or else the same thing is compared with itself. (The kicks of a back end stay recorded: they are its own, not the lock's.)
looks() { objdump -dr "$1" | grep -c 'R_X86_64.*flight_recording'; }
(($(looks "$1") > $(looks "$2"))) || { echo "$1 knows the flight recorder no better than $2"; exit 1; }

ours=$(fast_paths "$1")
theirs=$(fast_paths "$2")
(($(wc -l <<<"$ours") > 40)) || { echo "$1: only $(wc -l <<<"$ours") instructions found"; exit 1; }
if ! diff <(echo "$ours") <(echo "$theirs"); then
    echo "the fast paths differ"
    exit 1
fi
echo "$(cut -d: -f1 <<<"$ours" | sort -u | wc -l) fast paths, $(wc -l <<<"$ours") instructions, all the same"
