#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Two variants of whatever run-qemu.sh can change, booted in turns, and what spinkick-report says of the difference.
set -u -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/platforms/lib.sh
source "$root/tests/platforms/lib.sh"

usage() {
    cat <<'TEXT'
usage: compare-runs.sh --base "OPTIONS" --new "OPTIONS" [--rounds N] [--out DIR] [--compare "OPTIONS"] [-- OPTIONS OF BOTH]
Boots two variants in turns and says whether NEW is worse than BASE, with the confidence interval of each figure.

  --base, --new "OPTIONS"  what differs, as options of run-qemu.sh; empty for none
  --rounds N               boots of each (default 5)
  --out DIR                results (default build/runs/DATE): DIR/base/N, DIR/new/N
  --compare "OPTIONS"      options of spinkick-report compare, such as "--lock pv-queued/kvm --threshold 10%"
  --                       what follows are options of run-qemu.sh for both
Examples:
  compare-runs.sh --base "--host-kernel 6.1" --new "--host-kernel 6.12" -- --on nested-kvm --append tests=bench.contention
  compare-runs.sh --base "--host-kvm stock" --new "--host-kvm ./my.patch" -- --on nested-kvm --append tests=bench.contention
Exit codes: 0 no regression, 1 a regression, 2 error, and those of a boot that did not end: 3, 77, 124. A test that
fails in a boot is said, and its figures count.
TEXT
}

base='' new='' have_base=0 have_new=0 rounds=5 out='' compare=''
common=()
while (($#)); do
    option=$1
    shift
    case $option in
    --base | --new | --rounds | --out | --compare) (($#)) || die "$option: its value is missing" ;;&
    --base) base=$1 have_base=1 && shift ;;
    --new) new=$1 have_new=1 && shift ;;
    --rounds) rounds=$1 && shift ;;
    --out) out=$1 && shift ;;
    --compare) compare=$1 && shift ;;
    -h | --help) usage && exit 0 ;;
    --)
        common=("$@")
        break
        ;;
    *) die "unknown option $option (--help lists them)" ;;
    esac
done
((have_base && have_new)) || die "--base and --new are both needed (--help says what they are)"
[[ $base != "$new" ]] || die "--base and --new are both \"$base\": there is nothing to compare"
if [[ ! $rounds =~ ^[0-9]{1,4}$ ]] || ((rounds < 2)); then
    die "--rounds $rounds: a number from 2 to 9999 is wanted; a difference is not told from two boots"
fi
preset=release
for ((i = 0; i + 1 < ${#common[@]}; i++)); do
    [[ ${common[i]} != --preset ]] || preset=${common[i + 1]}
done
# What is wrong with the second variant must not come out after a boot of the first.
for side in "$base" "$new"; do
    read -ra options <<<"$side"
    "$root/run-qemu.sh" "${common[@]}" "${options[@]}" --dry-run >/dev/null || exit "$EXIT_ERROR"
done
out=${out:-$root/build/runs/$(date +%Y-%m-%d_%H-%M-%S)}
mkdir -p "$out" || die "--out $out: cannot create it"

# boot SIDE ROUND "OPTIONS": a variant that does not end well ends it all; what has been measured stays.
boot() {
    local code=0 options
    read -ra options <<<"$3"
    say "round $2 of $rounds: $1 (${3:-no options})"
    "$root/run-qemu.sh" "${common[@]}" "${options[@]}" --out "$out/$1/$2" >"$out/$1-$2.log" 2>&1 || code=$?
    ((code == EXIT_PASS)) && return
    if ((code == EXIT_FAIL)); then # a fault that was asked for, perhaps: its figures are whole
        warn "round $2 of $1: $(tail -n 2 "$out/$1-$2.log" | head -n 1)"
        return
    fi
    tail -n 5 "$out/$1-$2.log" >&2
    warn "error: round $2 of $1 ended with $code, all of it: $out/$1-$2.log"
    exit "$code"
}

sides=()
for ((round = 1; round <= rounds; round++)); do
    # Each first as often as the other: what the machine does in the meantime falls on both.
    if ((round % 2)); then
        boot base "$round" "$base" && boot new "$round" "$new"
    else
        boot new "$round" "$new" && boot base "$round" "$base"
    fi
    sides+=(--base "$out/base/$round" --new "$out/new/$round")
done
read -ra options <<<"$compare"
"$root/build/$preset/tools/spinkick-report" compare "${sides[@]}" "${options[@]}"
