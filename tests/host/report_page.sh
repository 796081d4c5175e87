#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Opens pages of `spinkick-report html` in a headless Chromium: each chart must have data and paint, in both themes, and
# the console must stay empty. No network: a page that asks for anything breaks its own Content-Security-Policy, which
# says so on the console.
#
# Usage: report_page.sh SPINKICK-REPORT MAKE_SAMPLE_RESULTS PAGE_CHECK.JS
set -u
report=$1
make_sample=$2
check=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for browser in chromium-headless-shell chromium ''; do
    command -v "$browser" >/dev/null && break
done
"$make_sample" "$dir/one" repetitions=5
if ! "$report" html "$dir/one" --out "$dir/one.html" 2>"$dir/stderr"; then
    if grep -q 'apt-get install libjs-chart.js' "$dir/stderr"; then
        echo "SKIP: built without Chart.js (apt-get install libjs-chart.js)"
        exit 77
    fi
    cat "$dir/stderr"
    exit 1
fi
if [ -z "$browser" ]; then
    echo "SKIP: no chromium-headless-shell and no chromium (apt-get install chromium-headless-shell)"
    exit 77
fi
failures=0
failed() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# look PAGE: what the check found, in $dir/found, and what the console said, in $dir/console.
look() {
    sed '/<\/body>/,$d' "$1" >"$dir/checked.html"
    { echo '<script>' && cat "$check" && echo '</script></body></html>'; } >>"$dir/checked.html"
    # As root there is no sandbox; the page is our own.
    timeout -k 5 120 "$browser" --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$dir/profile" \
        --window-size=1400,1000 --virtual-time-budget=10000 --enable-logging=stderr --dump-dom \
        "file://$dir/checked.html" >"$dir/dom" 2>"$dir/browser" || failed "$browser ended with $?: $(tail -n 1 "$dir/browser")"
    sed -n '/<pre id="found">/,/<\/pre>/p' "$dir/dom" | sed 's/.*<pre id="found">//; s/<\/pre>.*//' >"$dir/found"
    grep 'CONSOLE' "$dir/browser" >"$dir/console"
}

# good PAGE CHARTS WHAT: that many charts in each theme, without a fault.
good() {
    look "$1"
    if grep -q '^FAULT' "$dir/found" || ! grep -q '^end of the check' "$dir/found"; then
        failed "$3"
        cat "$dir/found"
    fi
    for theme in light dark tails; do
        grep -q "^charts $theme $2," "$dir/found" || failed "$3: $2 charts wanted, $theme: $(grep '^charts' "$dir/found")"
    done
    if [ -s "$dir/console" ]; then
        failed "$3: the console is not empty"
        cat "$dir/console"
    fi
}

good "$dir/one.html" 8 'one run'
[ "$(grep -c 'background rgb' "$dir/found")" -eq 3 ] || failed 'the check did not see the background'
[ "$(grep '^charts light' "$dir/found" | sed 's/.*background//')" != "$(grep '^charts dark' "$dir/found" | sed 's/.*background//')" ] ||
    failed 'light and dark have one background'
grep -q '^banner 1,' "$dir/found" || failed 'emulated time is not marked'

"$make_sample" "$dir/2x" repetitions=5 boots=2 cpus=4 seed=2 buckets=0
"$make_sample" "$dir/4x" repetitions=5 cpus=8 seed=3
"$report" html "$dir/2x,$dir/4x" --out "$dir/curves.html" || failed 'html of several runs'
good "$dir/curves.html" 18 'overcommit' # two of curves, eight for each factor

"$make_sample" "$dir/real" timing=real platform=kvm
"$report" html "$dir/real" --out "$dir/real.html" || failed 'html of a real run'
good "$dir/real.html" 8 'real time'
grep -q '^banner 0, marks 0' "$dir/found" || failed 'real time is marked as emulated'

"$make_sample" "$dir/host" host_counters=1
"$report" html "$dir/host" --out "$dir/host.html" || failed 'html of a run with counters of its host'
good "$dir/host.html" 9 'host counters'

"$make_sample" "$dir/busy" repetitions=8 busy=0.4 timing=real
"$report" html "$dir/busy" --out "$dir/busy.html" || failed 'html of a noisy run'
good "$dir/busy.html" 8 'noisy run'
grep -q '^banner 1, marks 0' "$dir/found" || failed 'a busy host is not marked'

# Controls: the check must be able to fail.
sed 's/"points":\[\[[0-9].*\]\]/"points":[]/' "$dir/one.html" | sed 's/"per_second":{[^}]*}/"per_second":{"mean":null,"stdev":null,"values":[]}/g' >"$dir/empty.html"
look "$dir/empty.html"
if ! grep -q '^FAULT' "$dir/found" && ! [ -s "$dir/console" ]; then failed 'control: charts without data were not seen'; fi
sed 's/^  draw();$//' "$dir/one.html" >"$dir/blank.html"
look "$dir/blank.html"
grep -q '^FAULT.*no chart' "$dir/found" || failed 'control: charts that were not drawn were not seen'
sed 's/^  drawHead();$/  drawHead(); console.error("a fault of the page");/' "$dir/one.html" >"$dir/noisy.html"
look "$dir/noisy.html"
grep -q 'a fault of the page' "$dir/console" || failed 'control: an error on the console was not seen'
sed 's/^  drawHead();$/  drawHead(); new Image().src = "http:\/\/127.0.0.1:9\/x.png";/' "$dir/one.html" >"$dir/online.html"
look "$dir/online.html"
grep -q 'Content Security Policy' "$dir/console" || failed 'control: a page that loads something was not seen'

[ "$failures" -eq 0 ] && echo "all as expected in $browser"
[ "$failures" -eq 0 ]
