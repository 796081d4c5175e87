#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# trace_test.sh PRESET OUT CHECK_TRACE: one run that traces the default lock and a lock whose waiters sleep and are kicked; its
# trace.json must keep the rules of the format and show every kind of slice and arrow.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1
out=$2
check_trace=$3

command -v qemu-system-x86_64 >/dev/null || { echo "SKIP: qemu-system-x86_64 not found"; exit 77; }
"$root/run-qemu.sh" --preset "$preset" --on tcg --smp 4 --out "$out" --timeout 60 \
    --append "tests=trace.default_lock,trace.contention locks=tas,pv-ticket/ipi spin_threshold=64" || exit 1
"$check_trace" "$out/trace.json" hold spin halt kick handoff kick-arrow
