#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
#
# The first and only process of nested-kvm's host: its guests are QEMUs.

# shellcheck source=tests/platforms/outer-init.sh
. /outer-init.sh

if [ ! -c /dev/kvm ]; then
    refuse "no /dev/kvm: the kernel needs CONFIG_KVM_AMD"
fi
read -r uptime _ </proc/uptime
tell "up $uptime s, Linux $(uname -r)"
tell "fact kernel $(uname -r)"
tell "fact cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
for setting in kvm/srcversion kvm/parameters/halt_poll_ns kvm_amd/parameters/pause_filter_count kvm_amd/parameters/pause_filter_thresh; do
    [ ! -r "/sys/module/$setting" ] || tell "fact ${setting##*/} $(cat "/sys/module/$setting")"
done

# TCG's nested SVM lost a starting guest now and then: one without a single byte is started again, twice at most. None of 2100
# was silent since guests keep off the first CPU; should one be, it is counted and shown.
attempts="1 2 3"
silence_s=15

# start_guest K PORT: its command line stands in /guests/K, one word a line.
start_guest() {
    guest_port=$2
    guest_log=/run/qemu-$1
    guest_monitor=/run/monitor-$1
    guest_serial=/run/serial-$1
    guest_file=/guests/$1
    set --
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <"$guest_file"
    rm -f "$guest_monitor.in" "$guest_monitor.out"
    mkfifo "$guest_monitor.in" "$guest_monitor.out"
    guest_copier=
    if [ -e /guests/interactive ] || [ -e /guests/counters ]; then
        # QEMU's `file` has no way in, and the port is no terminal for its `serial`. A port can be opened once.
        rm -f "$guest_serial".in "$guest_serial".out "$guest_serial".copy
        mkfifo "$guest_serial".in "$guest_serial".out "$guest_serial".copy
        exec 5<>"$guest_port"
        set -- "$@" -chardev "pipe,id=serial,path=$guest_serial" -serial chardev:serial
    else
        set -- "$@" -serial "file:$guest_port"
    fi
    "$@" -chardev "pipe,id=monitor,path=$guest_monitor" -mon monitor </dev/null >"$guest_log" 2>&1 &
    guest_pid=$!
    if [ -e /guests/interactive ]; then
        cat <&5 >"$guest_serial".in &
        cat <"$guest_serial".out >&5 &
        guest_copier=$!
    elif [ -e /guests/counters ]; then
        answer "${guest_file##*/}" "$guest_pid" "$guest_serial".in <"$guest_serial".copy &
        tee "$guest_serial".copy <"$guest_serial".out >&5 &
        guest_copier=$!
    fi
    guest_counters=/run/counters-${guest_file##*/}
    rm -f "$guest_counters"
    [ ! -e /guests/counters ] || sample "$guest_pid" "$guest_counters" &
}

# counters_of PID: KVM's statistics of a guest, " NAME=VALUE ...": all, or nothing if it ends meanwhile.
counters_of() {
    line='' complete=0
    for folder in /sys/kernel/debug/kvm/"$1"-*; do
        complete=1
        for name in directed_yield_attempted directed_yield_successful halt_attempted_poll halt_exits halt_successful_poll \
            halt_wakeup hypercalls irq_injections nmi_injections exits preemption_reported; do
            [ -e "$folder/$name" ] || continue # not in this kernel
            if read -r value <"$folder/$name"; then
                line="$line $name=$value"
            else
                complete=0
            fi
        done 2>/dev/null
    done
    [ "$complete" = 0 ] || echo "$line"
}

# sample PID FILE: the statistics of a guest, as long as it lives: they go with it. FILE always holds a whole set.
sample() {
    while kill -0 "$1" 2>/dev/null; do
        counters=$(counters_of "$1")
        if [ -n "$counters" ]; then
            echo "$counters" >"$2.new"
            mv "$2.new" "$2"
        fi
        sleep 0.3
    done
}

# answer K PID INPUT: at each sync point in guest K's lines its statistics are told, and the guest, which waits, gets a byte.
answer() {
    while IFS= read -r text; do
        case $text in
        '# sync '[0-9]*)
            tell "vm $1 sync ${text#\# sync }$(counters_of "$2")"
            echo >"$3"
            ;;
        esac
    done
}

# Where the CPUs of a guest are that has to be stopped. Its QEMU may be what is stuck: neither pipe is waited for
# longer than that.
stop_guest() {
    # shellcheck disable=SC2016 # for the inner shell
    timeout 5 sh -c 'echo "info registers -a" >"$0"' "/run/monitor-$1.in"
    timeout 2 cat "/run/monitor-$1.out" | tr -d '\r' | awk '/^CPU#/ { cpu = $1 } /^[RE]IP=/ { print cpu, $1, $2, $NF }' |
        while IFS= read -r line; do tell "vm $1 says $line"; done
    kill -9 "$2"
}
ending_of() { echo "$2"; }
complaints_of() { grep -v warning: "/run/qemu-$1"; }

# The keeper: TCG's fault struck when KVM's static keys are patched, at the first guest's start and the last one's end.
# As long as one guest exists they stay as they are.
qemu-system-x86_64 -accel kvm -machine microvm -m 16 -nodefaults -no-user-config -display none -S >/run/keeper 2>&1 &
for _ in $(seq 60); do
    if ls /sys/kernel/debug/kvm/*/vcpu0 >/dev/null 2>&1; then
        break
    fi
    sleep 0.5
done

start_other_cpus
# From here on, and for all that is started from here, all CPUs but the first (nested-kvm.sh says why).
taskset -pc "1-$(($(nproc) - 1))" $$ >/dev/null || refuse "taskset: cannot leave the first CPU: $(nproc) online, 2 are needed"
if [ -e /guests/hogs ]; then
    hogs=$(cat /guests/hogs)
    for _ in $(seq "$hogs"); do
        while :; do :; done &
    done
    tell "fact hogs $hogs"
fi
run_guests
finish
