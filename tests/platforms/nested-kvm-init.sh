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

# TCG's nested SVM loses a starting guest now and then: one without a single byte is started again, twice at most.
attempts="1 2 3"
silence_s=15

# start_guest K PORT: its command line stands in /guests/K, one word a line.
start_guest() {
    guest_port=$2
    guest_log=/run/qemu-$1
    guest_file=/guests/$1
    set --
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <"$guest_file"
    "$@" -serial "file:$guest_port" </dev/null >"$guest_log" 2>&1 &
    guest_pid=$!
    guest_counters=/run/counters-${guest_file##*/}
    rm -f "$guest_counters"
    [ ! -e /guests/counters ] || sample "$guest_pid" "$guest_counters" &
}

# sample PID FILE: KVM's statistics of a guest, as long as it lives: they go with it. FILE always holds a whole set.
sample() {
    while kill -0 "$1" 2>/dev/null; do
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
        if [ "$complete" = 1 ] && [ -n "$line" ]; then
            echo "$line" >"$2.new"
            mv "$2.new" "$2"
        fi
        sleep 0.3
    done
}
stop_guest() { kill -9 "$2"; }
ending_of() { echo "$2"; }
complaints_of() { grep -v warning: "/run/qemu-$1"; }

# The keeper: TCG's fault strikes when KVM's static keys are patched, at the first guest's start and the last one's end.
# As long as one guest exists they stay as they are.
qemu-system-x86_64 -accel kvm -machine microvm -m 16 -nodefaults -no-user-config -display none -S >/run/keeper 2>&1 &
for _ in $(seq 60); do
    if ls /sys/kernel/debug/kvm/*/vcpu0 >/dev/null 2>&1; then
        break
    fi
    sleep 0.5
done

start_other_cpus
run_guests
finish
