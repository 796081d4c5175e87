#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Every negative control again and again: each must be caught every time, soon; and no good lock may ever be reported.
set -u -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2
# shellcheck source=tests/platforms/lib.sh
source tests/platforms/lib.sh

usage() {
    cat <<'TEXT'
usage: tests/controls.sh [OPTION]...
Builds, runs every negative control and every good lock N times, and prints: claim, control, stage, caught how often,
longest time.

  --times N          how often (default 20)
  --stage LIST       checker, image, or both (default: checker,image)
  --on PLATFORM      where the image runs, as run-qemu.sh's (default tcg)
  --smp N            its vCPUs (default 4)
  --load             keep another CPU of this machine busy meanwhile
  --no-build         take build/PRESET as it is
  --preset NAME      which build (default release)
  --out DIR          records and logs (default build/runs/controls)
Exit codes: 0 all caught in time and no good lock reported, 1 not so, 2 error.
TEXT
}

times=20 stages=checker,image platform=tcg smp=4 load=0 build=1 preset=release out=build/runs/controls
readonly most_ms=10000
while (($#)); do
    case $1 in
    --times | --stage | --on | --smp | --preset | --out)
        (($# > 1)) || die "$1: its value is missing"
        case $1 in
        --times) times=$2 ;;
        --stage) stages=$2 ;;
        --on) platform=$2 ;;
        --smp) smp=$2 ;;
        --preset) preset=$2 ;;
        --out) out=$2 ;;
        esac
        shift
        ;;
    --load) load=1 ;;
    --no-build) build=0 ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown option $1 (--help lists them)" ;;
    esac
    shift
done
[[ $times =~ ^[1-9][0-9]{0,4}$ ]] || die "--times $times: a number from 1 on is wanted"
[[ ,$stages, =~ ^(,(checker|image))+,$ ]] || die "--stage $stages: checker, image, or both with a comma are wanted"

folder=build/$preset
checker=$folder/tests/host/check_locks
mutants=$folder/tests/host/check_mutants
list=$folder/tests/host/mutated/mutants.txt
mkdir -p "$out" || die "--out $out: cannot be made"
records=$out/records.txt # claim|control|stage|1 caught, 0 not|milliseconds
: >"$records"

busy=''
# shellcheck disable=SC2317 # called by the trap
cleanup() { [[ -z $busy ]] || kill "$busy" 2>/dev/null; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if ((build)); then
    say "building"
    targets=(spinkick spinkick-report check_locks check_mutants)
    { cmake --preset "$preset" && cmake --build "$folder" -j "$(nproc)" --target "${targets[@]}"; } >"$out/build.log" 2>&1 ||
        die "preset $preset cannot be built (all of it: $out/build.log)"
fi
if ((load)); then
    last=$(($(nproc) - 1))
    taskset -c "$last" bash -c 'while :; do :; done' &
    busy=$!
    say "CPU $last is kept busy by process $busy"
fi

now_ms() { echo $(($(date +%s%N) / 1000000)); }

record() { printf '%s|%s|%s|%s|%s\n' "$@" >>"$records"; }

# by_checker CLAIM CONTROL STAGE EXIT-CODE REGEX COMMAND...: once for each seed; caught if it ends with the code and
# says what it found.
by_checker() {
    local claim=$1 control=$2 stage=$3 code=$4 regex=$5 seed begin result caught
    shift 5
    for ((seed = 1; seed <= times; seed++)); do
        begin=$(now_ms)
        result=0
        timeout -k 5 120 "$@" --seed "$seed" >"$out/last.log" 2>&1 || result=$?
        caught=0
        if [[ $result == "$code" ]] && grep -qE -- "$regex" "$out/last.log"; then
            caught=1
        else
            mv "$out/last.log" "$out/missed.$(wc -l <"$records").log"
        fi
        record "$claim" "$control" "$stage" "$caught" $(($(now_ms) - begin))
    done
}

run_checker_stage() {
    local claim stage control header operator part found lock scenario
    [[ -x $checker && -x $mutants ]] || die "$checker or $mutants is not there: build them"
    while IFS='|' read -r claim stage control; do
        case $stage in
        checker)
            by_checker "$claim" "$control" checker 0 "^found, as it must be: $control " \
                "$checker" --lock "$control" --seconds 0.5
            ;;
        machine)
            by_checker "$claim" "$control" checker 0 "^found, as it must be: $control:" \
                "$checker" --lock "${control% *}" --scenario "${control#* }" --seconds 1
            ;;
        esac
    done < <(grep -v '^#' tests/controls.txt)
    while IFS='|' read -r claim header operator part; do
        found=$(awk -F'|' -v header="$header" -v operator="$operator" -v part="$part" '
            index($3, header ":") == 1 && $4 == operator && index($0, part) != 0 { print $1, $2; exit }' "$list")
        [[ -n $found ]] || die "seeded_bugs.txt names a fault that $list has not: $header $operator $part"
        by_checker "$claim" "$header: $operator" checker 1 '^FAILED ' \
            "$mutants" --mutant "${found% *}" --lock "${found#* }" --seconds 0.15
    done < <(grep -vE '^(#|$)' tests/host/checker/seeded_bugs.txt)
    # Good locks: what depends on the seed, every time; all of it is the test checker.locks.
    for lock in $("$checker" --list | awk '{ print $2 }' | uniq); do
        grep -q "|checker|$lock\$" tests/controls.txt && continue
        for scenario in 4x3-random 4x2-random 8x2-random; do
            by_checker "no good lock is reported" "$lock $scenario" "checker, good" 0 '^all locks held' \
                "$checker" --lock "$lock" --scenario "$scenario" --seconds 0.1
        done
    done
}

# boot CONTROLS TESTS NAME: one boot; a record for each test that ran.
boot() {
    local dir=$out/$3 result=0
    ./run-qemu.sh --on "$platform" --smp "$smp" --preset "$preset" --append "tests=$2" --timeout 300 --out "$dir" \
        >"$out/$3.log" 2>&1 || result=$?
    ((result == 0 || result == 1 || result == 2)) || say "$3: run-qemu.sh ends with $result (see $out/$3.log)"
    # A boot that ends before its verdict has caught nothing of what it was to run.
    awk -v controls="$1" -v platform="$platform" '
        BEGIN {
            while ((getline line < "tests/controls.txt") > 0)
                if (split(line, f, "|") == 3 && f[2] == "image") claim[f[3]] = f[1]
        }
        /"type":"test"/ {
            name = $0; sub(/.*"name":"/, "", name); sub(/".*/, "", name)
            ns = $0; sub(/.*"ns":/, "", ns); sub(/[^0-9].*/, "", ns)
            base = name; sub(/\/.*/, "", base)
            passed = ($0 ~ /"status":"pass"/)
            if (controls == "yes" && base in claim)
                printf "%s|%s|%s|%d|%d\n", claim[base], name, platform, passed, ns / 1000000
            else if (controls == "no")
                printf "no good lock is reported|%s|%s, good|%d|%d\n", name, platform, passed, ns / 1000000
            ran++
        }
        /^spinkick: verdict: / { verdict = 1 }
        END {
            if (!verdict || ran == 0) printf "every boot ends with a verdict|boot with %d tests|%s|0|0\n", ran, platform
        }' "$dir/serial.log" >>"$records"
}

run_image_stage() {
    local n controls
    controls=$(awk -F'|' '$2 == "image" { print $3 }' tests/controls.txt | paste -sd,)
    for ((n = 1; n <= times; n++)); do
        say "boot $n of $times"
        boot yes "$controls" "controls.$n"
        boot no "lock.*" "good.$n"
    done
}

[[ ,$stages, != *,checker,* ]] || run_checker_stage
[[ ,$stages, != *,image,* ]] || run_image_stage

awk -F'|' -v times="$times" -v most="$most_ms" '
    {
        key = $1 "|" $2 "|" $3
        if (!(key in runs)) order[++keys] = key
        runs[key]++
        caught[key] += $4
        if ($5 > longest[key]) longest[key] = $5
    }
    END {
        format = "%-68s %-62s %-14s %5s %9s\n"
        printf format, "claim", "control", "stage", "of " times, "longest"
        for (k = 1; k <= keys; k++) {
            key = order[k]
            split(key, f, "|")
            good = f[3] ~ /good$/
            # A good lock takes the time of its test; a control must be caught soon.
            bad = caught[key] != times || runs[key] != times || (!good && longest[key] > most)
            printf format, f[1], f[2], f[3], caught[key], sprintf("%.1f s", longest[key] / 1000) (bad ? "  <--" : "")
            wrong += bad
        }
        printf "%d controls and good locks, %d not as they must be\n", keys, wrong
        exit wrong != 0 || keys == 0
    }' "$records" | tee "$out/table.txt"
exit "${PIPESTATUS[0]}"
