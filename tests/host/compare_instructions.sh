#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Counts the instructions of an uncontended lock/unlock pair under callgrind, ours beside ConcurrencyKit's. A count does not
# depend on the load of the machine, so this comparison can be a test; times cannot.
#
# usage: compare_instructions.sh BENCH_LOCKS [LIMIT]     exits 1 if ours / peer is above LIMIT (default 1.0)
set -eu

bench=${1:?usage: compare_instructions.sh BENCH_LOCKS [LIMIT]}
limit=${2:-1.0}
pairs=10000

for tool in valgrind callgrind_annotate objcopy; do
    command -v "$tool" > /dev/null || { echo "SKIP no $tool: apt-get install valgrind binutils"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without line numbers: valgrind 3.19 cannot read clang's, and a function is then one line of the table.
objcopy --strip-debug "$bench" "$work/bench"
valgrind --quiet --tool=callgrind --callgrind-out-file="$work/out" "$work/bench" --pairs "$pairs" 2> "$work/err" ||
    { cat "$work/err"; exit 1; }
callgrind_annotate --auto=no --threshold=100 "$work/out" | grep -E 'lock_unlock_pairs<|ck_[a-z]*_pairs' > "$work/table"

awk -v pairs="$pairs" -v limit="$limit" '
    # Ir column, then file:function; every subject is one function.
    {
        ir = $1
        gsub(/,/, "", ir)
        if      (/NullLock/)   count["null"] += ir
        else if (/TasLock/)    count["tas"] += ir
        else if (/TicketLock/) count["ticket"] += ir
        else if (/QueuedLock/) count["queued"] += ir
        else if (/ck_fas_pairs/)    count["ck_fas"] += ir
        else if (/ck_ticket_pairs/) count["ck_ticket"] += ir
        else if (/ck_mcs_pairs/)    count["ck_mcs"] += ir
    }
    function compare(ours, theirs,    a, b) {
        if (!(ours in count) || !(theirs in count)) {
            printf "%s or %s is missing in the table\n", ours, theirs
            bad = 1
            return
        }
        a = (count[ours] - count["null"]) / pairs
        b = (count[theirs] - count["null"]) / pairs
        printf "%-8s %-10s %10.2f %10.2f %8.3f\n", ours, theirs, a, b, a / b
        if (a / b > limit + 0.0005) bad = 1
    }
    END {
        printf "instructions per pair, without the loop; limit of the ratio %s\n", limit
        printf "%-8s %-10s %10s %10s %8s\n", "lock", "peer", "ours", "peer", "ratio"
        compare("tas", "ck_fas")
        compare("ticket", "ck_ticket")
        compare("queued", "ck_mcs")
        exit bad
    }' "$work/table" || { echo "not as expected; the table was:"; cat "$work/table"; exit 1; }
