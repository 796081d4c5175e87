#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# power_test.sh PRESET OUT EVENT [TIMES]: what may happen to a machine while it runs, from QEMU's monitor.
#
#   reset      system_reset TIMES: every boot says the same of the machine, since nothing of the one before is left
#   stop       stop and cont while locks run: the soak passes
#   snapshot   savevm and loadvm while locks run: the soak passes, with a TSC that jumps
#   hot-add    a CPU more: it is left alone, and the soak passes
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1 out=$2 event=$3 times=${4:-3}
command -v qemu-system-x86_64 >/dev/null || { echo "SKIP: qemu-system-x86_64 not found"; exit 77; }
mkdir -p "$out"
log=$out/serial.log
work=$(mktemp -d)
qemu=
trap '[[ -z $qemu ]] || kill "$qemu" 2>/dev/null; rm -rf "$work"' EXIT

fail() {
    echo "$event: $*"
    tr -d '\r' <"$log" | tail -n 5
    exit 1
}
clean_log() { tr -d '\r' <"$log"; }
logged() { grep -aqE "$1" <(clean_log); }

# until_count N REGEX: until so many lines match.
until_count() {
    local tries
    for ((tries = 0; tries < 900; tries++)); do
        (($(clean_log | grep -acE "$2") < $1)) || return 0
        kill -0 "$qemu" 2>/dev/null || fail "QEMU has ended while '$2' was waited for"
        sleep 0.1
    done
    fail "'$2' did not come for the ${1}th time within 90 s"
}

# start WORDS QEMU-ARGUMENT...: with the monitor on file descriptor 3.
start() {
    local words=$1
    shift
    : >"$log"
    mkfifo "$work/monitor"
    timeout -k 5 200 qemu-system-x86_64 -accel tcg -machine q35 -m 256 -nodefaults -no-user-config -display none \
        -monitor stdio -serial "file:$log" -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$root/build/$preset/spinkick.elf" \
        -append "$words end=1" "$@" <"$work/monitor" >"$out/monitor.log" 2>&1 &
    qemu=$!
    exec 3>"$work/monitor"
}
monitor() { printf '%s\n' "$*" >&3; }

# passes: the run comes to its end, with a pass by its verdict line and by the exit device.
passes() {
    local code=0
    wait "$qemu" || code=$?
    qemu=
    ((code == 33)) || fail "QEMU ended with $code, 33 (PASS) is wanted"
    logged '^spinkick: verdict: PASS' || fail "no verdict PASS in the log"
    ! logged '^not ok|PANIC' || fail "$(clean_log | grep -aE '^not ok|PANIC' | head -n 1)"
}

case $event in
reset)
    start "tests=selftest.hang watchdog_ms=3600000" -smp 4
    for ((n = 1; n <= times + 1; n++)); do
        until_count "$n" '^# begin 1 selftest.hang'
        ((n > times)) || monitor system_reset
    done
    monitor quit
    wait "$qemu"
    qemu=
    # What is measured anew in each boot is not compared.
    clean_log | grep -a '"type":"context"' | sed -E 's/"tsc_khz":[0-9]+//' | sort | uniq -c >"$work/contexts"
    (($(wc -l <"$work/contexts") == 1)) || fail "the boots differ: $(cut -c 1-200 "$work/contexts")"
    (($(clean_log | grep -acE '^# 4 of 4 CPUs online') == times + 1)) || fail "not every boot has its 4 CPUs"
    ;;
stop)
    start "soak=6s" -smp 4
    for ((n = 1; n <= times; n++)); do
        until_count "$n" '^# soak: [0-9]+ of'
        monitor stop
        sleep 2
        monitor cont
        sleep 0.5
    done
    passes
    ;;
snapshot)
    command -v qemu-img >/dev/null || { echo "SKIP: qemu-img not found (qemu-utils)"; exit 77; }
    qemu-img create -q -f qcow2 "$work/disk.qcow2" 1M || fail "qemu-img"
    start "soak=8s" -smp 4 -drive "if=none,id=snapshots,file=$work/disk.qcow2,format=qcow2"
    until_count 1 '^# soak: [0-9]+ of'
    monitor savevm first
    for ((n = 1; n <= times; n++)); do
        sleep 2 # the TSC goes on meanwhile
        kill -0 "$qemu" 2>/dev/null || fail "the run was over before loadvm $n"
        monitor loadvm first
    done
    passes
    grep -aqi 'error' "$out/monitor.log" && fail "$(grep -ai error "$out/monitor.log" | head -n 1)"
    ;;
hot-add)
    start "soak=4s" -smp 2,maxcpus=4,sockets=4 -cpu qemu64
    until_count 1 '^# soak: [0-9]+ of'
    monitor device_add qemu64-x86_64-cpu,id=third,socket-id=2,core-id=0,thread-id=0
    passes
    logged '2 CPUs not enabled' || fail "the room for CPUs is not told"
    grep -aqi 'error' "$out/monitor.log" && fail "$(grep -ai error "$out/monitor.log" | head -n 1)"
    ;;
*) echo "power_test.sh: no event $event" >&2 && exit 2 ;;
esac
echo "$event: ok"
