# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# One boot: QEMU under a time limit, every byte of the serial line kept, and the verdict of the report tool.

# Whose CPUs a QEMU shows when its guest hangs, if anybody's: `virtual` are the image's, `physical` those below its hypervisor.
outside_view=
# What looking takes at most, with the start of a program on a busy machine.
readonly look_s=8

# run_qemu DIR SECONDS COMMAND...: sets $qemu_status and $timed_out; a platform_watch sees the start, with $qemu_pid. The serial stream, which the command has on its
# standard output, goes to DIR/serial.log and what QEMU itself says to DIR/qemu.log.
run_qemu() {
    local dir=$1 seconds=$2 limit=$2 started=$SECONDS reader view=$outside_view looker=''
    local watch=("$report" follow --log "$dir/serial.log" --total-timeout "$seconds")
    shift 2
    ((verbose)) && watch=(tee -a "$dir/serial.log")
    [[ -p $scratch/serial ]] || mkfifo "$scratch/serial"
    if ((interactive)); then
        # In the foreground group: it reads the terminal.
        "$report" monitor --socket "$scratch/serial.sock" --log "$dir/serial.log" --history "$history_file" <&"$keyboard" &
        reader=$!
        cat "$scratch/serial" >>"$dir/qemu.log" & # QEMU's standard output, which is not the guest's here
    else
        setsid "${watch[@]}" <"$scratch/serial" &
        reader=$!
    fi
    ((${#scratch} <= 100)) || view='' # the name of a socket has 107 bytes at most
    if [[ -n $view ]]; then
        set -- "$@" -qmp "unix:$(option_value "$scratch/qmp"),server=on,wait=off"
        limit=$((seconds + look_s))
    fi
    # timeout(1), not a clock of our own: QEMU then ends in time even if this script is killed.
    setsid timeout -k 5 "$limit" "$@" </dev/null 2>"$dir/qemu.log" >"$scratch/serial" &
    qemu_pid=$!
    if [[ -n $view ]]; then
        # Behind the look SIGALRM, by which timeout(1) takes its time to be over. The trap makes the shell outlive the tool, as
        # a group is there until somebody has waited for its last process, and whoever inherits that one may take a second. Of its own, the shell has nothing to say.
        # shellcheck disable=SC2016 # for the inner shell
        setsid bash -c 'exec 3>&2 2>/dev/null; trap exit TERM; "$@" 2>&3 3>&-; kill -ALRM "$0"' "$qemu_pid" "$report" post-mortem --after "$seconds" --qmp "$scratch/qmp" \
            --log "$dir/serial.log" --image "$image" --cpus "$view" &
        looker=$!
    fi
    qemu_status=0 timed_out=0
    if declare -F platform_watch >/dev/null; then platform_watch "$dir"; fi
    if ((interactive)); then
        wait "$reader" || :
        end_soon "$qemu_pid"
    fi
    wait "$qemu_pid" || qemu_status=$?
    [[ -z $looker ]] || terminate "$looker"
    wait "$reader"
    # 124 is timeout's word for it; if it had to kill, the status is 137, as after anybody's kill.
    if ((qemu_status == 124 || (qemu_status == 137 && SECONDS - started >= seconds))); then timed_out=1; fi
    ((qemu_status < 125 || qemu_status > 127)) || die "cannot start $1: $(tail -n 1 "$dir/qemu.log")"
}

# end_soon PID: the person has left, or the guest has closed its line: a QEMU that stays on is ended.
end_soon() {
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    terminate "$1"
}

# collect DIR RUN VM STATUS TIMED_OUT: the verdict of one guest, in $collected. STATUS is QEMU's, or `shutdown REASON` of a
# Xen domain, or empty if nobody knows it.
collect() {
    local options=(--serial "$1/serial.log" --out "$1" --platform "$platform" --timing "$timing" --image "$image"
        --image-sha256 "$image_sha256")
    ((repeat == 1)) || options+=(--run "$2")
    [[ -z $pcpus ]] || options+=(--pcpus "$pcpus")
    ((vms == 1)) || options+=(--vm "$3")
    ((!host_counters)) || options+=(--host-counters "${host_counts:-}" --host-syncs "$1/host-counters.log")
    ((${#host_facts[@]} == 0)) || options+=(--host-fact "${host_facts[@]}")
    case $4 in
    '') ;;
    shutdown\ *) options+=(--xen-shutdown "${4#* }") ;;
    *) options+=(--qemu-exit "$4") ;;
    esac
    (($5 == 0)) || options+=(--timed-out)
    collected=0
    "$report" collect "${options[@]}" || collected=$?
    result_dirs+=("$1")
}

# What a platform does unless it says otherwise: one QEMU, one image, one serial line.
platform_boot() {
    local dir=$1 run=$2 reason
    run_qemu "$dir" "$timeout_s" "${command[@]}"
    if [[ $platform == xen-* ]]; then
        facts_of_xen "$dir/serial.log"
        vcpus_of_xen "$dir/serial.log"
    fi
    reason=$(refusal "$dir/qemu.log")
    if ((qemu_status == 1)) && is_host_limit "$reason"; then
        warn "SKIP: this QEMU cannot have that machine: $reason"
        collected=$EXIT_NOTHING_RAN
        return
    fi
    collect "$dir" "$run" 1 "$qemu_status" "$timed_out"
    if ((collected == EXIT_ERROR)) && [[ -n $reason ]]; then warn "$reason"; fi
}

platform_commands() { quoted "${command[@]}"; }

# boot DIR RUN: $collected is its exit code.
boot() {
    mkdir -p "$1" || die "--out $out: cannot create $1"
    # What an earlier run left, by its full name: the folder may hold other things too.
    rm -f "$1"/{serial.log,qemu.log,host.log,control.log,host-counters.log,results.tap,results.json,junit.xml} "$1"/vm-[0-9]*/{serial,host-counters}.log
    platform_command "$1"
    platform_commands >"$1/command.txt"
    ((verbose)) && cat "$1/command.txt"
    host_facts=()
    facts_of_this_machine
    platform_boot "$1" "$2"
}
