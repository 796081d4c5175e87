#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# same_kernel_test.sh PRESET OUT TIMES: one host kernel compared with itself, TIMES times; a difference is a false one. "No
# verdict", as on a host that was busy, is none, but half of the comparisons must come to one, or nothing was tried.
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1 out=$2 times=$3
same=0 without=0 different=0

mkdir -p "$out"
for ((n = 1; n <= times; n++)); do
    code=0
    "$root"/compare-runs.sh --base "--append seed=1" --new "--append seed=2" --rounds 2 --out "$out/$n" \
        --compare "--lock queued/native --lock pv-queued/kvm --figure acquisitions_per_s" -- --on nested-kvm --smp 4 --pcpus 2 \
        --preset "$preset" --append "tests=bench.contention locks=queued,pv-queued/kvm duration_ms=50 repeat=8" >"$out/$n.log" 2>&1 || code=$?
    verdict=$(grep -E '^(NO )?(REGRESSION|VERDICT)' "$out/$n.log" | tail -n 1)
    if grep -Eq '^(Worse in NEW|Better in NEW|Different,)' "$out/$n.log" && [[ $verdict != "NO VERDICT"* ]]; then
        different=$((different + 1))
        echo "comparison $n: $verdict; see $out/$n.log"
    elif [[ $code == 0 ]]; then
        same=$((same + 1))
    elif [[ $verdict == "NO VERDICT"* ]]; then
        without=$((without + 1))
        echo "comparison $n: $verdict"
    else
        echo "comparison $n: exit code $code: $(tail -n 1 "$out/$n.log")"
        exit 1
    fi
done
echo "$times comparisons of a kernel with itself: $same same, $without without a verdict, $different different"
((different == 0 && same * 2 >= times))
