#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs the checker over one seeded fault for each claim: it must report every one.
#
# usage: find_seeded_bugs.sh CHECK_MUTANTS MUTANTS.TXT SEEDED_BUGS.TXT
set -eu

checker=${1:?usage: find_seeded_bugs.sh CHECK_MUTANTS MUTANTS.TXT SEEDED_BUGS.TXT}
mutants=${2:?usage: find_seeded_bugs.sh CHECK_MUTANTS MUTANTS.TXT SEEDED_BUGS.TXT}
bugs=${3:?usage: find_seeded_bugs.sh CHECK_MUTANTS MUTANTS.TXT SEEDED_BUGS.TXT}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
trap 'exit 130' INT TERM

missed=0
all=0
while IFS='|' read -r claim header operator part; do
    case $claim in '' | \#*) continue ;; esac
    all=$((all + 1))
    found=$(awk -F'|' -v header="$header" -v operator="$operator" -v part="$part" '
        index($3, header ":") == 1 && $4 == operator && index($0, part) != 0 { print $1, $2; exit }' "$mutants")
    [ -n "$found" ] || { echo "find_seeded_bugs.sh: $bugs names a fault that $mutants has not: $header $operator $part"; exit 2; }
    result=0
    timeout -k 5 120 "$checker" --mutant "${found% *}" --lock "${found#* }" --seconds 1 > "$output" 2>&1 || result=$?
    if [ "$result" -eq 1 ]; then
        echo "found   $claim: $(sed -n 's/^FAILED //p' "$output" | head -n 1)"
    else
        echo "MISSED  $claim (mutant ${found% *}, exit code $result)"
        missed=$((missed + 1))
    fi
done < "$bugs"
echo "seeded bugs: $all, missed: $missed"
[ "$all" -gt 0 ] && [ "$missed" -eq 0 ]
