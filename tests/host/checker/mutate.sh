#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The mutation run: starts the checker once for each fault that make_mutants.sh has put into the lock headers, and says
# which it has found (killed) and which not (survived). A survivor must be explained in the file of explanations:
# header|operator|part of the statement|why. One whose explanation begins with "equivalent:" is no fault at all and is not
# counted.
#
# usage: mutate.sh CHECK_MUTANTS MUTANTS.TXT EXPLANATIONS [SECONDS]     SECONDS of CPU time per scenario, 2 if not given
# exit code: 0 at least 90 % of the faults killed and each survivor explained, 1 not so, 2 the checker does not work
set -eu

checker=${1:?usage: mutate.sh CHECK_MUTANTS MUTANTS.TXT EXPLANATIONS [SECONDS]}
mutants=${2:?usage: mutate.sh CHECK_MUTANTS MUTANTS.TXT EXPLANATIONS [SECONDS]}
explanations=${3:?usage: mutate.sh CHECK_MUTANTS MUTANTS.TXT EXPLANATIONS [SECONDS]}
seconds=${4:-2}
least=90

output=$(mktemp)
trap 'rm -f "$output"' EXIT
trap 'exit 130' INT TERM

# The reason why this mutant may survive; nothing if nobody has given one.
explain() { # HEADER OPERATOR STATEMENT
    awk -F'|' -v header="$1" -v operator="$2" -v statement="$3" '
        !/^#/ && $1 == header && $2 == operator && index(statement, $3) != 0 { print $4; exit }' "$explanations"
}

# Without a fault nothing may be found, or every mutant would count as killed.
if ! timeout -k 5 900 "$checker" --mutant 0 --seconds "$seconds" > "$output" 2>&1; then
    echo "mutate.sh: the checker fails without any mutant:"
    grep '^FAILED' "$output" || tail -n 3 "$output"
    exit 2
fi

killed=0
survived=0
unexplained=0
equivalent=0
while IFS='|' read -r number lock place operator statement; do
    result=0
    timeout -k 5 300 "$checker" --mutant "$number" --lock "$lock" --seconds "$seconds" > "$output" 2>&1 || result=$?
    case $result in
    1)
        killed=$((killed + 1))
        echo "killed    $place $operator: $statement"
        sed -n 's/^FAILED [^:]*: /          by: /p' "$output" | cut -c1-160 | head -n 1
        ;;
    0)
        survived=$((survived + 1))
        reason=$(explain "${place%:*}" "$operator" "$statement")
        echo "SURVIVED  $place $operator: $statement"
        if [ -n "$reason" ]; then
            echo "          because $reason"
            case $reason in equivalent:*) equivalent=$((equivalent + 1)) ;; esac
        else
            unexplained=$((unexplained + 1))
            echo "          not explained in $explanations (mutant $number)"
        fi
        ;;
    *)
        echo "mutate.sh: mutant $number ($place $operator): the checker ended with $result:"
        tail -n 3 "$output"
        exit 2
        ;;
    esac
done < "$mutants"

all=$((killed + survived))
[ "$all" -gt 0 ] || { echo "mutate.sh: no mutant in $mutants"; exit 2; }
faults=$((all - equivalent))
echo "mutants: $all, killed: $killed ($((killed * 100 / all)) %), survived: $survived, of these equivalent: $equivalent," \
    "not explained: $unexplained"
echo "killed of the $faults that are faults: $((killed * 100 / faults)) %, at least $least % wanted"
[ $((killed * 100)) -ge $((faults * least)) ] && [ "$unexplained" -eq 0 ]
