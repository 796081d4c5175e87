# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# What every platform needs: messages, quoting, and processes that are always ended and reaped.

# Exit codes of the runner (docs/report-format.md says how a run gets one).
readonly EXIT_PASS=0 EXIT_FAIL=1 EXIT_ERROR=2 EXIT_CRASH=3 EXIT_NOTHING_RAN=77 EXIT_HANG=124

say() { printf '%s: %s\n' "${0##*/}" "$*"; }

warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die TEXT: the caller or the environment is wrong.
die() {
    warn "error: $*"
    exit "$EXIT_ERROR"
}

# skip TEXT: what was asked for does not exist here.
skip() {
    warn "SKIP: $*"
    exit "$EXIT_NOTHING_RAN"
}

# worst_of A B: the one that decides several boots, in the order of the contract.
worst_of() {
    local code
    for code in "$EXIT_FAIL" "$EXIT_CRASH" "$EXIT_HANG" "$EXIT_ERROR" "$EXIT_NOTHING_RAN"; do
        if [[ $1 == "$code" || $2 == "$code" ]]; then
            echo "$code"
            return
        fi
    done
    echo "$EXIT_PASS"
}

# quoted WORD...: one line that a shell reads back as these words.
quoted() {
    local word line=
    for word in "$@"; do
        if [[ $word =~ ^[A-Za-z0-9_@%+=:,./-]+$ ]]; then
            line+=" $word"
        else
            line+=" '${word//\'/\'\\\'\'}'"
        fi
    done
    printf '%s\n' "${line# }"
}

# option_value TEXT: QEMU ends an option's value at a comma; a doubled comma is one that belongs to the value.
option_value() { printf '%s' "${1//,/,,}"; }

# Processes. Each one that may last is started as `setsid COMMAND ... &`: it leads a process group of its own, so that a
# Ctrl-C at the terminal reaches only this script, which then ends its jobs one by one. A QEMU that is stopped, or that
# does not act on the signal, must not outlive the run.

# signal_group SIGNAL PID: to the group, or to the process that has not yet become its leader.
signal_group() { kill "-$1" -- "-$2" 2>/dev/null || kill "-$1" "$2" 2>/dev/null; }

# terminate PID: asks the whole group to end, then makes it.
terminate() {
    local tries
    signal_group TERM "$1"
    signal_group CONT "$1" # a stopped process acts on no signal but SIGKILL
    for ((tries = 0; tries < 30; tries++)); do
        signal_group 0 "$1" || return 0
        sleep 0.1
    done
    signal_group KILL "$1"
}

terminate_jobs() {
    local pid
    for pid in $(jobs -p); do
        terminate "$pid"
    done
    wait
}

# pause SECONDS: a sleep that a signal ends, and that is not left behind.
pause() {
    sleep "$1" &
    wait $!
}

# quietly LOG COMMAND...: runs it, its output only in LOG; interruptible, unlike a plain foreground command, whose end
# bash waits for before it looks at a signal.
quietly() {
    local log=$1
    shift
    setsid "$@" </dev/null >>"$log" 2>&1 &
    wait $!
}
