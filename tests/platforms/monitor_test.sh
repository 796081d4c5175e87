#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# monitor_test.sh PRESET PLATFORM OUT: a script at the monitor of a real guest: what it asks for is done, what is nonsense is
# named and changes nothing, a switch is turned while a test runs, and the run ends with the verdict of what was run.
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1 platform=$2 out=$3
case $platform in
nested-kvm | kvm) lock=pv-queued/kvm ;;
xen-*) lock=pv-queued/xen ;;
*) lock=pv-queued/ipi ;;
esac

command -v qemu-system-x86_64 >/dev/null || { echo "SKIP: qemu-system-x86_64 not found"; exit 77; }

said=$out/said
mkdir -p "$out"
"$root/run-qemu.sh" --on "$platform" --smp 2 --preset "$preset" --timeout 150 --interactive --out "$out" >"$said" 2>&1 <<SCRIPT
help
locks
run smp.all_online
set spin_treshold 5
run no.such.test
run bench.contention locks=$lock duration_ms=1000 repeat=2 &
set spin_threshold 77
stats
reset
dump
trace $lock
frobnicate
SCRIPT
code=$?
failed=0
expect() {
    if ! grep -q -- "$1" "$said"; then
        echo "missing: $1"
        failed=1
    fi
}
expect 'run TEST\[,TEST\]'
expect "^$lock\$"
expect '^ok 1 smp.all_online$'
expect 'error: spin_treshold=5: unknown key "spin_treshold"; did you mean spin_threshold?'
expect 'error: tests=no.such.test: matches nothing'
expect "^set spin_threshold=77: the locks' switches now"
expect '^ok 2 bench.contention$'
expect '^lock_slowpath [1-9]'
expect '^counters are 0 from now on$'
expect '^dump, asked for'
expect "^ok 3 trace.contention/$lock\$"
expect 'error: frobnicate: no command'
expect '^PASS: 3 of 3 tests passed'
[[ -s $out/trace.json ]] || { echo "no trace.json" && failed=1; }
((code == 0)) || { echo "exit code $code" && failed=1; }
((failed)) && cat "$said"
exit "$failed"
