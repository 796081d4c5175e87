#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# bench64_test.sh PRESET OUT SCHEMA: every benchmark with 64 vCPUs on whatever this machine has comes to its end, and each
# record that the image wrote is, whole, in results.json, results.tap and junit.xml; the last is valid, and prove reads the TAP.
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1 out=$2 schema=$3
wrong=0

# Under tcg: what a guest with 64 vCPUs does to two CPUs, without another emulation between.
"$root"/run-qemu.sh --on tcg --smp 64 --preset "$preset" --out "$out" --timeout 1500 --append \
    "tests=bench.contention,bench.micro,bench.jobs,bench.ebizzy,bench.io,bench.mixed locks=tas,queued,pv-queued bench_cpus=64 repeat=1 limit_ms=500 compact=1" ||
    wrong=1
# records FILE: of benchmarks, without what the runner adds, a line each.
records() {
    sed 's/&quot;/"/g' "$1" | grep -Eo '\{"type":"(bench|histogram)".*' | sed -E 's/,"(test|timing|platform|image|image_sha256|pcpus)".*//; s/\}$//' | sort
}
wanted=$(records "$out/serial.log")
count=$(grep -c . <<<"$wanted")
echo "$count records of benchmarks"
((count > 50)) || wrong=1
for file in results.tap junit.xml; do
    found=$(records "$out/$file")
    if [[ $found != "$wanted" ]]; then
        echo "$file: its records differ from those of the serial line:"
        diff <(echo "$wanted") <(echo "$found") | cut -c 1-200 | head -n 4
        wrong=1
    fi
done
# The JSON file is indented: by its count, and by what the report makes of each benchmark.
in_json=$(grep -cE '"type": "(bench|histogram)"' "$out/results.json")
if [[ $in_json != "$count" ]]; then
    echo "results.json: $in_json records of $count"
    wrong=1
fi
for table in micro jobs io mixed; do
    "$root/build/$preset/tools/spinkick-report" table "$table" "$out" >"$out/$table.txt" 2>"$out/$table.err" || [[ -s $out/$table.txt ]] || wrong=1
done
xmllint --noout --quiet --schema "$schema" "$out/junit.xml" || wrong=1
prove --exec cat "$out/results.tap" || wrong=1
exit "$wrong"
