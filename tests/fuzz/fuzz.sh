#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fuzz.sh TARGET [SECONDS]: libFuzzer over one parser, from the corpus in the tree. What it adds to the corpus, and what it
# finds, is left in build/fuzz. A finding belongs into corpus/TARGET under a name that says what it was.
set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$1
seconds=${2:-600}
[[ -d $here/corpus/$target ]] || { echo "$target: one of $(cd "$here/corpus" && echo *)" >&2; exit 2; }
command -v clang++ >/dev/null || { echo "SKIP: clang++ not found: apt-get install clang"; exit 77; }

build=$root/build/fuzz
mkdir -p "$build/corpus/$target" "$build/findings"
{ env -C "$root" cmake --preset fuzz && flock "$build/lock" cmake --build "$build" --target spinkick_fuzz; } >"$build/$target-build.log" 2>&1 ||
    { tail -n 30 "$build/$target-build.log"; exit 2; }

# A line that is longer than the image's is a log without line ends; tables have their own limits.
longest=8192
[[ $target != @(acpi_tables|pvh_info|multiboot2_info) ]] || longest=16384
[[ $target != results_json ]] || longest=32768 # a histogram alone has 10 KB
log=$build/$target.log
SPINKICK_FUZZ_TARGET=$target UBSAN_OPTIONS=print_stacktrace=1 "$build/tests/fuzz/spinkick_fuzz" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -max_len=$longest -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="$build/findings/$target-" "$build/corpus/$target" "$here/corpus/$target" >"$log" 2>&1
code=$?
grep -E '^(stat::number_of_executed_units|stat::average_exec|fuzz:|SUMMARY|==.*ERROR|Test unit written)|runtime error|does not hold|uncaught' "$log"
grep -E 'cov: [0-9]+' "$log" | tail -n 1
((code == 0)) || { tail -n 30 "$log"; exit 1; }
