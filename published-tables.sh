#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The tables by which these locks were argued about, each by one command: boots what it needs and prints it in the
# layout in which it was published. What they say, beside the originals: docs/published-tables.md.
set -u -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/platforms/lib.sh
source "$root/tests/platforms/lib.sh"

usage() {
    cat <<'TEXT'
usage: published-tables.sh [--out DIR] [--on PLATFORM] [--scale PERCENT] TABLE...
Boots what each table needs, on nested-kvm with two CPUs, and prints it as it was published; minutes each.

  micro      time for 1 to N tasks, ticket and queued locks, PV off and on; above two tasks overcommitted
  jobs       jobs a minute and real, sys, usr time of five locks under three loads, at 1x and at 2x
  yield      yield_to candidates: any vCPU against preempted ones, at 1x to 4x: ebizzy and jobs (builds two kvm.ko)
  bitmap     the same, a flag in each vCPU against a bitmap
  waitearly  ebizzy in three guests under the three policies of pv_wait_early, on a host without the two boosts, with
             them, and without pause loops
  cascade    whether one early halt makes the next waiter halt early: from traces at 3x
  io         operations a second with spinlock debugging, PV locks, and neither
  io-xen     the same in a Xen PV domU, where it was published
  events     Xen PVH: from send to receiver, two-level and FIFO event channels
  --out DIR        results (default build/runs/DATE): DIR/TABLE/...
  --on PLATFORM    another platform than nested-kvm, where the table allows it
  --scale PERCENT  less or more work in each (default 100)
Exit codes: 0 all printed, 2 error, and those of a boot that did not end: 3, 77, 124.
TEXT
}

out='' platform=nested-kvm scale=100
tables=()
while (($#)); do
    case $1 in
    --out | --on | --scale) (($# > 1)) || die "$1: its value is missing" ;;&
    --out) out=$2 && shift ;;
    --on) platform=$2 && shift ;;
    --scale) scale=$2 && shift ;;
    -h | --help) usage && exit 0 ;;
    micro | jobs | yield | bitmap | waitearly | cascade | io | io-xen | events) tables+=("$1") ;;
    *) die "$1 is no table and no option (--help lists them)" ;;
    esac
    shift
done
((${#tables[@]})) || die "which tables? (--help lists them)"
[[ $scale =~ ^[1-9][0-9]{0,3}$ ]] || die "--scale $scale: a percentage from 1 to 9999 is wanted"
out=${out:-$root/build/runs/$(date +%Y-%m-%d_%H-%M-%S)}

# scaled N: N, scaled.
scaled() { echo $(($1 * scale / 100 > 0 ? $1 * scale / 100 : 1)); }

# boot DIR OPTION...: a boot that does not end ends it all. One whose test failed is said, and its figures count: with a
# host that forgets a yield on purpose, host.yields_for_each_kick fails, and says so.
boot() {
    local dir=$out/$1 code=0
    shift
    mkdir -p "$dir" || die "--out: cannot create $dir"
    say "${dir#"$out"/}: run-qemu.sh $(quoted "$@")"
    "$root/run-qemu.sh" --timeout 3000 --out "$dir" "$@" >"$dir/run.log" 2>&1 || code=$?
    if ((code == EXIT_FAIL)); then
        warn "$(tail -n 1 "$dir/run.log") (all of it: $dir/run.log)"
    elif ((code != EXIT_PASS)); then
        tail -n 5 "$dir/run.log" >&2
        warn "error: ${dir#"$out"/} ended with $code, all of it: $dir/run.log"
        exit "$code"
    fi
}

report() { "$root/build/release/tools/spinkick-report" "$@" || exit; }

table_micro() {
    boot micro --on "$platform" --smp 8 --pcpus 2 \
        --append "tests=bench.micro locks=ticket,queued,pv-ticket,pv-queued pairs=$(scaled 50000) limit_ms=10000 repeat=3"
    report table micro "$out/micro"
}

table_jobs() {
    # Where nobody is preempted but by chance, one repetition of three may be the one that was.
    boot jobs/2 --on "$platform" --smp 2 --pcpus 2 --append "tests=bench.jobs jobs=$(scaled 2000) limit_ms=10000 repeat=9"
    boot jobs/4 --on "$platform" --smp 4 --pcpus 2 --append "tests=bench.jobs jobs=$(scaled 2000) limit_ms=10000 repeat=3"
    report table jobs "$out/jobs/2" "$out/jobs/4"
}

# two_hosts NAME BASE NEW: ebizzy and jobs at 1x to 4x on two hosts in turns.
two_hosts() {
    local name=$1 smp variant
    for smp in 2 4 6 8; do
        for variant in "$2" "$3"; do
            boot "$name/$variant/$smp" --on nested-kvm --smp "$smp" --pcpus 2 --host-kvm "pause-exits+$variant" \
                --append "tests=bench.ebizzy,bench.jobs locks=queued load=moderate jobs=$(scaled 300) limit_ms=10000 duration_ms=$(scaled 1000) repeat=9"
        done
    done
    for figure in records_per_s jobs_per_min; do
        say "$figure: $2 against $3"
        report table overcommit "$out/$name/$2"/? --against "$out/$name/$3"/? --figure "$figure"
    done
}
table_yield() { two_hosts yield yield-any yield-flag; }
table_bitmap() { two_hosts bitmap yield-flag yield-bitmap; }

# Three guests, each with as many vCPUs as there are CPUs, as published.
table_waitearly() {
    local host words
    for host in pause-exits+no-interrupt-boost+no-head-boost pause-exits stock; do
        # A PAUSE that exits costs thousands of times one that does not: with the usual threshold nobody would ever halt.
        words=
        [[ $host == stock ]] || words=spin_threshold=512
        boot "waitearly/$host" --on nested-kvm --vms 3 --smp 4 --pcpus 4 --host-kvm "$host" \
            --append "tests=bench.waitearly locks=pv-queued/kvm duration_ms=$(scaled 1500) repeat=5 $words"
        say "host: $host"
        report table waitearly "$out/waitearly/$host"
    done
}

table_cascade() {
    local policy n
    for policy in state preempted; do
        for ((n = 1; n <= $(scaled 5); n++)); do
            boot "cascade/$policy/$n" --on "$platform" --smp 6 --pcpus 2 \
                --append "tests=trace.contention locks=pv-queued wait_early=$policy"
        done
    done
    report table cascade "$out"/cascade/*/*
}

table_io() {
    boot io --on "$platform" --smp 4 --pcpus 2 \
        --append "tests=bench.io locks=debug,byte,ticket,pv-queued,queued duration_ms=$(scaled 1000) repeat=3"
    report table io "$out/io"
}

table_io_xen() {
    boot io-xen --on xen-domu-pv --smp 4 \
        --append "tests=bench.io locks=debug,byte/xen,ticket/native duration_ms=$(scaled 1000) repeat=3"
    report table io "$out/io-xen"
}

table_events() {
    local form
    for form in 2l fifo; do
        boot "events/$form" --on xen-pvh --smp 3 --append "tests=bench.event_channels evtchn=$form"
    done
    report table events "$out/events/2l" "$out/events/fifo"
}

for table in "${tables[@]}"; do
    "table_${table/-/_}"
done
