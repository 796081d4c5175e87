#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fleet.sh OUT HOST... [-- SPINKICK OPTION...]: the same job on many hosts at once, by ssh, and one report of all of them. Needs
# `spinkick` on each host, `spinkick-report` here, and, if it is there, GNU parallel. The exit code is that of the worst host.
set -u -o pipefail
(($# >= 2)) || { echo "usage: fleet.sh OUT HOST... [-- SPINKICK OPTION...]" >&2; exit 2; }
out=$1
shift
hosts=()
while (($#)) && [[ $1 != -- ]]; do
    hosts+=("$1")
    shift
done
(($#)) && shift
mkdir -p "$out" || exit 2

# one HOST OPTION...: the job there, its results here.
one() {
    # shellcheck disable=SC2016 # for the shell on the other side
    local host=$1 folder=$FLEET_OUT/$1 command='d=$(mktemp -d) && { spinkick --out "$d/r"'
    shift
    mkdir -p "$folder"
    (($# == 0)) || command+=" $(printf '%q ' "$@")"
    # shellcheck disable=SC2016
    command+='>&2; code=$?; tar -C "$d/r" -cf - .; rm -rf "$d"; exit $code; }'
    # shellcheck disable=SC2029 # quoted above, for that side
    ssh -o BatchMode=yes "$host" "$command" 2>"$folder/fleet.log" | tar -C "$folder" -xf - 2>>"$folder/fleet.log"
    local code=${PIPESTATUS[0]}
    echo "$host: exit code $code"
    [[ -s $folder/results.json ]] || echo "$host: no results: $(tail -n 1 "$folder/fleet.log")"
}
export FLEET_OUT=$out
export -f one

if command -v parallel >/dev/null; then
    parallel --will-cite --jobs 0 one {} "$@" ::: "${hosts[@]}"
else
    for host in "${hosts[@]}"; do one "$host" "$@" & done
    wait
fi
folders=()
for host in "${hosts[@]}"; do folders+=("$out/$host"); done
spinkick-report merge "${folders[@]}" --out "$out/all"
code=$?
spinkick-report summary "$out/all"
exit "$code"
