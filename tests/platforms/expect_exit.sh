#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs a command and judges how it ended: its exit code, what it said, and that no process of it is left.
#
#   expect_exit.sh --exit CODE [--says REGEX]... [--log FILE] [--needs THING]... [--send SIGNAL | --then SCRIPT] [--after REGEX]
#                  -- COMMAND...
#
# --says    must match a line of the output or of FILE (a serial log)
# --needs   a command or a path without which there is nothing to test: exit code 77
# --send    INT: to the command's process group, as a terminal does; TERM: to the command alone; STOP: to its QEMU;
# --then    a shell script, with the process ids of its QEMU in $QEMU; not 0 is a failure
#           each once the output or FILE matches the REGEX of --after
set -u -o pipefail

wanted='' log='' signal='' script='' after=''
says=()
while (($#)); do
    case $1 in
    --exit) wanted=$2 ;;
    --says) says+=("$2") ;;
    --log) log=$2 ;;
    --needs)
        if [[ ! -e $2 ]] && ! command -v "$2" >/dev/null; then
            echo "SKIP: $2 is not here"
            exit 77
        fi
        ;;
    --send) signal=$2 ;;
    --then) script=$2 ;;
    --after) after=$2 ;;
    --) shift && break ;;
    *) echo "expect_exit.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift 2
done

# Every process that comes of the command has this in its environment, whatever group or session it went to.
mark=SPINKICK_EXPECT=$$-$RANDOM$RANDOM
output=$(mktemp)
trap 'rm -f "$output"' EXIT

qemus() {
    local pid
    for pid in $(family); do
        [[ $(<"/proc/$pid/comm") != qemu-system* ]] || echo "$pid"
    done
}

family() { grep -lsF "$mark" /proc/[0-9]*/environ | sed 's|/proc/\(.*\)/environ|\1|' | grep -vx $$; }

failures=()
fail() { failures+=("$1"); }

[[ ! -f $log ]] || rm -f "$log" # a pattern must not match the last run
# A shell starts its background commands with SIGINT ignored; a terminal does not.
setsid env --default-signal=INT "$mark" "$@" >"$output" 2>&1 &
command=$!

if [[ -n $signal$script ]]; then
    for ((tries = 0; tries < 600; tries++)); do
        ! grep -qsE "$after" "$output" ${log:+"$log"} || break
        sleep 0.1
    done
    ((tries < 600)) || fail "'$after' did not appear within 60 s, so that ${signal:-the script} came at another time"
    case $signal in
    '') QEMU=$(qemus | tr '\n' ' ') bash -c "$script" || fail "the script ended with $?" ;;
    INT) kill -INT -- "-$command" ;;
    STOP) qemus | xargs -r kill -STOP ;;
    *) kill "-$signal" "$command" ;;
    esac
fi

code=0
wait "$command" || code=$?
cat "$output"

((code == wanted)) || fail "exit code $code, $wanted is wanted"
for regex in "${says[@]}"; do
    grep -qsE -- "$regex" "$output" ${log:+"$log"} || fail "nothing it said matches '$regex'"
done
sleep 0.2
for pid in $(family); do
    fail "process $pid is left: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-120)"
    kill -KILL "$pid"
done

if ((code == 77 && wanted != 77)); then exit 77; fi
if ((${#failures[@]})); then
    printf 'expect_exit.sh: %s\n' "${failures[@]}" >&2
    exit 1
fi
