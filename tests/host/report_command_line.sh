#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# spinkick-report as the runner and a person call it: exit codes, the one line of each error, and what other programs
# (xmllint, prove) make of its files. The checksums in here were computed by zlib.
#
# Usage: report_command_line.sh SPINKICK-REPORT JUNIT.XSD MAKE_SAMPLE_RESULTS
set -u
report=$1
schema=$2
make_sample=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0

# expect CODE WHAT COMMAND...: the exit code, and at most one line on standard error.
expect() {
    wanted=$1 what=$2
    shift 2
    "$@" >"$dir/stdout" 2>"$dir/stderr"
    code=$?
    lines=$(wc -l <"$dir/stderr")
    if [ "$code" -ne "$wanted" ] || [ "$lines" -gt 1 ] || { [ "$code" -eq 2 ] && [ "$lines" -ne 1 ]; }; then
        echo "FAILED: $what: exit code $code instead of $wanted, $lines lines:"
        cat "$dir/stderr"
        failures=$((failures + 1))
    fi
}

# says TEXT: the last command named it.
says() {
    if ! grep -qF -- "$1" "$dir/stderr" "$dir/stdout"; then
        echo "FAILED: nothing says \"$1\":"
        cat "$dir/stderr" "$dir/stdout"
        failures=$((failures + 1))
    fi
}

collect() { "$report" collect --out "$dir/$1" --platform tcg --timing emulated --serial "$dir/$1.log" "$2" "$3"; }

printf '%s\n' 'spinkick: boot: pvh' 'KTAP version 1' '# json {"type":"context","cpus":2}' '1..2' '# begin 1 boot.tables' \
    'ok 1 boot.tables' '# begin 2 lock.a/tas/native' 'ok 2 lock.a/tas/native # SKIP no KVM' \
    'spinkick: verdict: PASS plan=2 pass=1 fail=0 error=0 skip=1 crc=654cccf8' >"$dir/pass.log"
sed -e 's/^ok 2.*/not ok 2 lock.a\/tas\/native # <two> \& "more"/' \
    -e 's/^spinkick: verdict.*/spinkick: verdict: FAIL plan=2 pass=1 fail=1 error=0 skip=0 crc=1f167cff/' \
    "$dir/pass.log" >"$dir/fail.log"
sed '/verdict/d' "$dir/pass.log" >"$dir/cut.log"
: >"$dir/empty.log"
printf 'not ok 1 x\001y.z # \377\n1..3\n\000\n' >"$dir/garbage.log"

expect 0 'pass' collect pass --qemu-exit 33
if [ -s "$dir/stderr" ] || [ -s "$dir/stdout" ]; then
    echo 'FAILED: collect of a pass is not silent'
    failures=$((failures + 1))
fi
expect 1 'fail' collect fail --qemu-exit 35
expect 3 'crash' collect cut --qemu-exit 0
expect 2 'contradiction' collect pass --qemu-exit 35
says 'verdict line says PASS'
says 'QEMU ended with 35'
expect 0 'pass again' collect pass --qemu-exit 33
expect 2 'empty log' collect empty --run 1
says 'empty'
expect 2 'no log' collect missing --run 1
says 'missing.log'
expect 3 'garbage' collect garbage --run 1
expect 124 'hang' "$report" collect --serial "$dir/cut.log" --out "$dir/hang" --platform tcg --timing emulated --timed-out
expect 2 'bad timing' "$report" collect --serial "$dir/cut.log" --out "$dir/x" --platform tcg --timing slow
says 'slow'
expect 2 'bad hash' collect pass --image-sha256 12
expect 2 'bad number' collect pass --run x
expect 2 'output is a file' "$report" collect --serial "$dir/pass.log" --out "$dir/pass.log/x" --platform tcg --timing real
expect 2 'no sub-command' "$report"
expect 2 'unknown sub-command' "$report" frobnicate
says 'frobnicate'
expect 2 'unknown option' "$report" summary --frobnicate
expect 0 'help' "$report" --help

expect 0 'summary' "$report" summary "$dir/pass" "$dir/fail/results.json"
says 'FAIL: 2 of 4 tests passed, 1 failed, 1 skipped'
expect 2 'summary of a missing run' "$report" summary "$dir/nothing" "$dir/pass"
says 'nothing'
says 'PASS: 1 of 2 tests passed'
head -c 100 "$dir/pass/results.json" >"$dir/half.json"
expect 2 'summary of half a file' "$report" summary "$dir/half.json"
says 'half.json'
sed 's/"schema": 1/"schema": 9/' "$dir/pass/results.json" >"$dir/newer.json"
expect 2 'summary of a newer file' "$report" summary "$dir/newer.json"
says 'schema 9'

expect 0 'merge of passes' "$report" merge "$dir/pass" "$dir/pass" --out "$dir/merged"
expect 3 'merge with a crash' "$report" merge "$dir/pass" "$dir/cut" --out "$dir/merged"
expect 1 'merge with a fail' "$report" merge "$dir/cut" "$dir/fail" "$dir/hang" --out "$dir/merged"
expect 2 'merge with a missing run' "$report" merge "$dir/pass" "$dir/nothing" --out "$dir/merged2"

expect 0 'junit' "$report" junit "$dir/pass" "$dir/fail" --out "$dir/junit.xml"
expect 0 'junit to standard output' "$report" junit "$dir/pass" "$dir/fail"
if ! cmp "$dir/stdout" "$dir/junit.xml"; then
    echo 'FAILED: junit writes two different files'
    failures=$((failures + 1))
fi
expect 2 'junit of a missing run' "$report" junit "$dir/pass" "$dir/nothing"
says 'nothing'

# Ten repetitions a side are enough for a verdict; three are not.
"$make_sample" "$dir/base" repetitions=10 seed=1
"$make_sample" "$dir/same" repetitions=10 seed=2
"$make_sample" "$dir/slow" repetitions=10 seed=3 queued/native=0.7
"$make_sample" "$dir/short" repetitions=3 seed=4
"$make_sample" "$dir/other" repetitions=10 seed=5 platform=tcg
"$make_sample" "$dir/real" repetitions=10 seed=6 timing=real
expect 0 'compare of equals' "$report" compare "$dir/base" "$dir/same/results.json"
says 'NO REGRESSION'
expect 1 'compare with a regression' "$report" compare "$dir/base" "$dir/slow"
says 'queued/native acquisitions/s'
says 'REGRESSION: 1 of'
expect 0 'compare below the threshold' "$report" compare "$dir/base" "$dir/slow" --threshold 60%
expect 0 'compare of another lock' "$report" compare "$dir/base" "$dir/slow" --lock tas --figure acquisitions_per_s
expect 2 'compare of too little' "$report" compare "$dir/base" "$dir/short"
says 'NO VERDICT'
expect 0 'compare of several' "$report" compare "$dir/base,$dir/same" "$dir/same" --new "$dir/base"
says '20 against 20, in 2 and 2 boots'
expect 0 'compare by options' "$report" compare --base "$dir/base" --base "$dir/same" --new "$dir/same"
expect_problem() { # WHAT TEXT ARGUMENT...
    text=$2
    what=$1
    shift 2
    expect 2 "$what" "$report" compare "$@"
    says "$text"
}
expect_problem 'compare of two platforms' 'BASE ran on nested-kvm (emulated time), NEW on tcg (emulated time)' "$dir/base" "$dir/other"
expect_problem 'compare of two kinds of time' 'NEW on nested-kvm (real time)' "$dir/base" "$dir/real"
expect_problem 'compare of a mixture' 'problem     NEW has no figures of' "$dir/base,$dir/other" "$dir/same"
says 'queued/native'
expect_problem 'compare without figures' 'BASE has no figures' "$dir/pass" "$dir/base"
expect_problem 'compare of an unknown lock' 'no figure is of a lock' "$dir/base" "$dir/same" --lock nosuchlock
head -c 9000 "$dir/same/results.json" >"$dir/half.json"
expect 2 'compare with half a file' "$report" compare "$dir/base" "$dir/half.json"
says 'half.json: cut or damaged'
expect 2 'compare with half a file more' "$report" compare "$dir/base" "$dir/same,$dir/half.json"
says 'half.json: cut or damaged'
says 'NO REGRESSION'
expect 2 'compare of a newer file' "$report" compare "$dir/newer.json" "$dir/base"
says 'schema 9'
expect 2 'compare of one side' "$report" compare "$dir/base"
expect 2 'compare with a bad threshold' "$report" compare "$dir/base" "$dir/same" --threshold much
says 'much'
expect 2 'compare of an unknown figure' "$report" compare "$dir/base" "$dir/same" --figure speed
says 'wait_p99'

for cpus in 2 4 8; do
    "$make_sample" "$dir/base$cpus" repetitions=5 cpus=$cpus seed=$cpus
    "$make_sample" "$dir/new$cpus" repetitions=5 cpus=$cpus seed=1$cpus pv-queued/kvm=1.3
done
expect 0 'table overcommit' "$report" table overcommit "$dir/base2" "$dir/base4" "$dir/base8" --against "$dir/new2" "$dir/new4" "$dir/new8"
says 'base stdev patched stdev %improve'
says '4x         8 on 2'
expect 0 'table overcommit of two locks' "$report" table overcommit "$dir/base2,$dir/base4" --lock queued --lock pv-queued
says 'queued/native -> pv-queued/kvm 1x'
expect 2 'table overcommit with a factor too few' "$report" table overcommit "$dir/base2" "$dir/base4" --against "$dir/new2"
says 'patched has no acquisitions/s of tas/native (contention, 4 vCPUs on 2 host CPUs, nested-kvm)'
says '1x         2 on 2'
expect 2 'table overcommit of nothing against' "$report" table overcommit "$dir/base2" --lock queued
expect 2 'table overcommit of an unknown lock' "$report" table overcommit "$dir/base2" --lock queued --lock nosuchlock
says 'nosuchlock'
expect 2 'table micro of other benchmarks' "$report" table micro "$dir/base2"
says 'tests=bench.micro'
expect 2 'table without a name' "$report" table
expect 2 'table of a missing run' "$report" table overcommit "$dir/nothing" --against "$dir/new2"

# Where the program was built without Chart.js the page is an error that names the package.
if "$report" html "$dir/base" --out "$dir/page.html" 2>"$dir/stderr"; then
    expect 2 'html of a missing run' "$report" html "$dir/base" "$dir/nothing" --out "$dir/page.html"
    says 'nothing'
    expect 2 'html into a missing folder' "$report" html "$dir/base" --out "$dir/no/such/page.html"
    says 'no/such'
else
    expect 2 'html without Chart.js' "$report" html "$dir/base" --out "$dir/page.html"
    says 'apt-get install libjs-chart.js'
fi
expect 2 'html without a place' "$report" html "$dir/base"

expect 2 'follow without a place for the log' "$report" follow --log "$dir/no/such/log" </dev/null
"$report" follow --log "$dir/copy.log" <"$dir/pass.log" 2>"$dir/progress"
printf '%s\n' '[1/2] ok boot.tables' '[2/2] skip lock.a/tas/native: no KVM' >"$dir/wanted"
if ! cmp "$dir/pass.log" "$dir/copy.log" || ! cmp "$dir/progress" "$dir/wanted"; then
    echo 'FAILED: follow lost bytes or tests'
    failures=$((failures + 1))
fi

cp "$dir/cut.log" "$dir/hung.log"
expect 0 'post-mortem without a QEMU' "$report" post-mortem --qmp "$dir/no-socket" --log "$dir/hung.log" --image "$dir/no-image"
if ! grep -q '^#   .*no-socket: no QEMU answers there' "$dir/hung.log" || ! grep -q '^# stall verdict: none: ' "$dir/hung.log"; then
    echo 'FAILED: post-mortem does not say in the log that there was no QEMU'
    failures=$((failures + 1))
fi
expect 2 'post-mortem of other CPUs' "$report" post-mortem --qmp q --log l --image i --cpus some
says 'some'
expect 2 'qmp without a QEMU' "$report" qmp --socket "$dir/no-socket" stop
says 'no QEMU answers there'

for run in pass fail cut empty garbage hang merged; do
    if command -v xmllint >/dev/null; then
        expect 0 "junit.xml of $run is valid" xmllint --noout --quiet --schema "$schema" "$dir/$run/junit.xml"
    fi
done
if command -v prove >/dev/null; then
    expect 0 'prove reads a pass' prove --exec cat "$dir/pass/results.tap"
    for run in fail cut merged garbage hang; do
        if prove --exec cat "$dir/$run/results.tap" >/dev/null 2>&1; then
            echo "FAILED: prove takes results.tap of $run for a pass"
            failures=$((failures + 1))
        fi
    done
fi

[ "$failures" -eq 0 ] && echo 'all as expected'
[ "$failures" -eq 0 ]
