#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# boot_times.sh PRESET OUT [ROUNDS]: a benchmark, not a test: from the kernel's entry to its first line and to the verdict of an
# empty suite, in the guest's time, and how long the whole process took beside it; on two machines, up to 254 vCPUs, in turns.
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1 out=$2 rounds=${3:-3}
readonly cpus=(1 16 64 254) machines=(q35 microvm)

command -v qemu-system-x86_64 >/dev/null || { echo "SKIP: qemu-system-x86_64 not found"; exit 77; }
mkdir -p "$out"
: >"$out/times"
for ((round = 1; round <= rounds; round++)); do
    for machine in "${machines[@]}"; do
        for n in "${cpus[@]}"; do
            log=$out/$machine-$n
            began=${EPOCHREALTIME/[.,]/}
            "$root/run-qemu.sh" --preset "$preset" --on tcg --machine "$machine" --smp "$n" --append "skip=*" --out "$log" >"$log.said" 2>&1
            code=$?
            ended=${EPOCHREALTIME/[.,]/}
            ((code == 77)) || { cat "$log.said" && echo "$machine, $n vCPUs: exit code $code, not 77 of an empty suite" && exit 1; }
            # us of the guest to the first line and to the verdict, us of the host
            sed -n 's/^# entry to first line: \([0-9]*\) us\r*$/\1/p; s/^# entry to verdict: \([0-9]*\) us\r*$/\1/p' "$log/serial.log" |
                paste -s -d ' ' | sed "s/\$/ $((ended - began)) $machine $n/" >>"$out/times"
        done
    done
done
awk '
    NF != 5 { print "cannot read: " $0; bad = 1; next }
    { key = $4 " " $5; count[key]++; first[key] += $1; verdict[key] += $2; whole[key] += $3; if (!(key in seen)) order[++keys] = key; seen[key] = 1 }
    END {
        print "machine  vCPUs  first line  verdict  a vCPU more  whole process   (guest ms, guest ms, guest us, s; means of " count[order[1]] ")"
        for (i = 1; i <= keys; i++) {
            key = order[i]; split(key, part, " "); n = count[key]
            v = verdict[key] / n
            grows = part[2] > 1 ? sprintf("%.0f", (v - base[part[1]]) / (part[2] - 1)) : "-"
            if (part[2] == 1) base[part[1]] = v
            at[part[1], part[2]] = v
            printf "%-8s %5d %11.2f %8.1f %12s %14.2f\n", part[1], part[2], first[key] / n / 1000, v / 1000, grows, whole[key] / n / 1e6
        }
        printf "254 vCPUs against 16: q35 %.1f x, microvm %.1f x (goal: 3 x)\n", at["q35", 254] / at["q35", 16], at["microvm", 254] / at["microvm", 16]
        exit bad
    }' "$out/times"
