#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# stalls_test.sh PRESET OUT TIMES PLATFORM...: provokes each kind of stall, TIMES times, and looks for its name in what the
# image prints. A table at the end: the kind, how often it was named, and how it was provoked. Every boot's results stay in OUT.
#
# On-request tests bring the guest to a standstill from inside (tests/selftest/stalls.cpp). From outside come: more vCPUs than
# CPUs, for whom the host has no time; SIGSTOP and QMP stop for the whole guest; and a process on the CPU that it is pinned to.
# What a platform cannot have is a line of its own: TCG alone tells no steal time, so there nobody can tell a holder that was
# preempted from one that works, nor a slow host from a pause.
set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
(($# >= 4)) || { echo "usage: stalls_test.sh PRESET OUT TIMES PLATFORM..." >&2 && exit 2; }
preset=$1 out=$2 times=$3
shift 3
report=$root/build/$preset/tools/spinkick-report
sockets=$(mktemp -d) # the name of a socket has 107 bytes at most
trap 'rm -rf "$sockets"' EXIT
mkdir -p "$out"

declare -A named=() tried=() means=()
rows=() # "platform kind", in the order of the table

# count ROW HOW YES|NO WHERE
count() {
    [[ -n ${tried[$1]:-} ]] || rows+=("$1")
    tried[$1]=$((${tried[$1]:-0} + 1))
    means[$1]=$2
    if [[ $3 == yes ]]; then
        named[$1]=$((${named[$1]:-0} + 1))
    else
        echo "$1: not named, see $4"
    fi
}

# said_of LOG TEST: what the dumps of this test call it, one line for each of its variants that ran: "WORD" if it then
# failed, as it has to.
said_of() {
    tr -d '\r' <"$1" | awk -v test="$2" '
        match($0, /# begin [0-9]+ /) { name = substr($0, RSTART + RLENGTH); word = "nothing" }
        match($0, /# stall verdict: [^,:]*/) { word = substr($0, RSTART + 17, RLENGTH - 17) }
        /^(not )?ok [0-9]+ / {
            passed = $1 == "ok"
            result = passed ? $3 : $4
            if ((result == test || index(result, test "/") == 1) && !/# SKIP/)
                print result == name ? (passed ? "a pass" : word) : "nothing"
        }'
}

# inside PLATFORM N HOW "KIND=TEST,..." OPTION...: one boot with all of these tests.
inside() {
    local platform=$1 n=$2 how=$3 pair kind said tests='' dir=$out/$1-$5-$2 log
    local -a pairs
    IFS=, read -ra pairs <<<"$4"
    for pair in "${pairs[@]}"; do
        tests+=,selftest.stall_${pair#*=}
    done
    log=$dir/serial.log
    "$root/run-qemu.sh" --on "$platform" --preset "$preset" --out "$dir" --timeout 180 --append "tests=${tests#,}" \
        "${@:6}" >"$dir.log" 2>&1
    for pair in "${pairs[@]}"; do
        kind=${pair%=*}
        said=$(said_of "$log" "selftest.stall_${pair#*=}" 2>/dev/null | sort -u)
        count "$platform: $kind" "$how" "$([[ $said == "$kind" ]] && echo yes || echo no)" "$dir.log ($said)"
    done
}

# outside PLATFORM N KIND HOW REGEX SCRIPT OPTION...: one boot of a guest that is well, to which the script does something.
outside() {
    local platform=$1 n=$2 kind=$3 how=$4 regex=$5 script=$6 dir
    dir=$out/$1-${kind// /_}-$2
    rm -rf "$dir"
    if "$here/expect_exit.sh" --exit 0 --log "$dir/serial.log" --says "$regex" --after '# begin 1 ' --then "$script" -- \
        "$root/run-qemu.sh" --on "$platform" --preset "$preset" --out "$dir" --timeout 180 \
        --append "tests=selftest.pause_is_forgiven watchdog_ms=1500" "${@:7}" >"$dir.log" 2>&1; then
        count "$platform: $kind" "$how" yes
    else
        count "$platform: $kind" "$how" no "$dir.log"
    fi
}

may_be_real_time() { chrt -f 1 true 2>/dev/null; }

# A process of the guest's own CPU: the first that this script may use, as for --pcpus 1.
own_cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
readonly own_cpu
# On a busy machine a vCPU is not run for a second now and then, and looks like one that stands still: then more.
readonly patience_ms=${SPINKICK_STALL_MS:-1500}
readonly ok='^ok 1 selftest\.pause_is_forgiven'
readonly unknown='did not run for [0-9]+ ms: paused guest or slow host'
# shellcheck disable=SC2016 # for the script
readonly pause='kill -STOP $QEMU && sleep 2 && kill -CONT $QEMU'
# Xen counts a pause that catches a vCPU on its way to a CPU as time that it waited: the line is then that of a slow host.
# shellcheck disable=SC2016
readonly pauses='for _ in 1 2 3; do kill -STOP $QEMU && sleep 1.5 && kill -CONT $QEMU && sleep 0.5 || exit; done'
readonly locks='lost wake-up=lost_wake_up,deadlock=deadlock,starvation=starvation,holder stuck=holder_stuck,no answer=no_answer'
readonly by_itself='a test brings the guest to it'
readonly crowded='sixteen vCPUs on one CPU'

for ((n = 1; n <= times; n++)); do
    for platform in "$@"; do
        case $platform in
        tcg)
            inside tcg "$n" "$by_itself" "$locks,lost IPI=lost_ipi" inside --smp 4 --append "watchdog_ms=$patience_ms"
            outside tcg "$n" 'paused guest' 'SIGSTOP; the line leaves open a slow host' "$unknown" "$pause" --smp 2
            socket=$sockets/qmp
            outside tcg "$n" 'no stall under QMP stop' 'QEMU stops the clocks too: nothing is to be seen' "$ok" \
                "'$report' qmp --socket $socket stop && sleep 2 && '$report' qmp --socket $socket cont" --smp 2 -- \
                -qmp "unix:$socket,server=on,wait=off"
            outside tcg "$n" 'no stall beside a busy process' "an ordinary process on the guest's CPU" "$ok" \
                "timeout 3 taskset -c $own_cpu sh -c 'while :; do :; done'; :" --smp 2 --pcpus 1
            if may_be_real_time; then
                outside tcg "$n" 'slow host' "a real-time process on the guest's CPU; the line leaves open a pause" "$unknown" \
                    "timeout 4 chrt -f 1 taskset -c $own_cpu sh -c 'while :; do :; done'; :" --smp 2 --pcpus 1
            else
                echo "tcg: slow host: chrt -f: this machine permits no real-time process, and an ordinary one is no trouble"
            fi
            ;;
        nested-kvm)
            inside nested-kvm "$n" "$by_itself" "$locks,lost IPI=lost_ipi,lost kick=lost_kick" inside --smp 4 --append "watchdog_ms=$patience_ms"
            inside nested-kvm "$n" "$crowded" 'holder preempted=holder_preempted,slow host=slow_host' crowded --smp 16 --pcpus 1 --append watchdog_ms=5000
            outside nested-kvm "$n" 'paused guest' 'SIGSTOP for the machine around it' \
                'did not run for [0-9]+ ms: paused guest \(' "$pause" --smp 2
            ;;
        xen-pvh | xen-pv)
            by_ipi=,lost\ IPI=lost_ipi
            [[ $platform == xen-pvh ]] || by_ipi='' # no local APIC
            inside "$platform" "$n" "$by_itself" "$locks$by_ipi,lost kick=lost_kick" inside --smp 4 --append "watchdog_ms=$patience_ms"
            inside "$platform" "$n" "$crowded" 'holder preempted=holder_preempted,slow host=slow_host' crowded --smp 16 \
                --pcpus 1 --append watchdog_ms=5000 --xen-args sched_credit_tslice_ms=5 # all get their turn before an NMI is overdue
            outside "$platform" "$n" 'paused guest' 'SIGSTOP for the machine around it, three times' \
                'did not run for [0-9]+ ms: paused guest \(' "$pauses" --smp 2
            ;;
        *) echo "stalls_test.sh: $platform: tcg, nested-kvm, xen-pvh or xen-pv is wanted" >&2 && exit 2 ;;
        esac
    done
done

wrong=0
printf '\n%-44s %-12s %s\n' 'platform: what' 'named' 'how'
for row in "${rows[@]}"; do
    printf '%-44s %-12s %s\n' "$row" "${named[$row]:-0} of ${tried[$row]}" "${means[$row]}"
    ((${named[$row]:-0} == tried[$row])) || wrong=1
done
exit "$wrong"
