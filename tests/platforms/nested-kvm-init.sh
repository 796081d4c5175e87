#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
#
# The first and only process of nested-kvm's host: starts the guests that /guests describes and tells the runner how
# each of them ended. It speaks on the virtio port `control`, one line per event; each guest's serial line has a port of
# its own, so that the runner sees every byte at once and none is mixed with another's.

export PATH=/bin:/usr/bin
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t debugfs none /sys/kernel/debug
mount -t tracefs none /sys/kernel/tracing

# A module that this kernel has built in is not in /modules.
for module in /modules/*.ko; do
    [ -e "$module" ] && insmod "$module"
done

# port NAME: its device.
port() {
    for device in /sys/class/virtio-ports/*; do
        if [ "$(cat "$device/name" 2>/dev/null)" = "$1" ]; then
            echo "/dev/${device##*/}"
            return
        fi
    done
}

# Bytes that have left by a port, as the kernel counts them; the guest itself must not be asked.
bytes_sent() { sed -n 's/^bytes_sent: //p' "/sys/kernel/debug/virtio-ports/${1##*/}"; }

# The kernel learns the names of the ports from the device, some time after it has found it.
tries=0
control=$(port control)
while [ -z "$control" ] && [ "$tries" -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
    control=$(port control)
done
if [ -z "$control" ]; then
    echo "spinkick host: error: no virtio port: the kernel needs CONFIG_VIRTIO_CONSOLE and CONFIG_VIRTIO_PCI"
    poweroff -f
fi
exec 3>"$control"
tell() { echo "$*" >&3; }

if [ ! -c /dev/kvm ]; then
    tell "error no /dev/kvm: the kernel needs CONFIG_KVM_AMD"
    poweroff -f
fi
read -r uptime _ </proc/uptime
tell "up $uptime s, Linux $(uname -r)"

# Seconds after which a guest without a first byte, or without a verdict, is ended.
silence_s=15
limit_s=$(cat /guests/limit_s)

# watch PID PORT BYTES_BEFORE FILE: ends a guest that says nothing, or no verdict, in time; FILE then says which. The time
# for a verdict runs from the first byte on.
watch() {
    waited=0
    while [ "$(bytes_sent "$2")" = "$3" ]; do
        if [ "$waited" -ge "$silence_s" ]; then
            echo silent >"$4"
            kill -9 "$1"
            return
        fi
        sleep 1
        waited=$((waited + 1))
    done
    sleep "$limit_s"
    echo timeout >"$4"
    kill -9 "$1"
}

# run_guest K: its command line stands in /guests/K, one word a line.
run_guest() {
    guest=$1
    serial=$(port "vm$guest")
    while [ -z "$serial" ] && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
        serial=$(port "vm$guest")
    done
    set --
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <"/guests/$guest"

    # TCG's nested SVM loses a starting guest now and then: one without a single byte is started again, twice at most.
    for attempt in 1 2 3; do
        ended=/run/ended-$guest-$attempt
        before=$(bytes_sent "$serial")
        tell "vm $guest start $attempt"
        "$@" -serial "file:$serial" </dev/null >"/run/qemu-$guest" 2>&1 &
        qemu=$!
        watch "$qemu" "$serial" "$before" "$ended" &
        watcher=$!
        wait "$qemu"
        code=$?
        kill "$watcher" 2>/dev/null
        grep -v warning: "/run/qemu-$guest" | while IFS= read -r line; do tell "vm $guest says $line"; done
        if [ -e "$ended" ]; then
            code=$(cat "$ended")
        fi
        [ "$code" = silent ] || break
        tell "vm $guest silent $attempt"
    done
    tell "vm $guest end $code"
}

# The keeper: TCG's fault strikes when KVM's static keys are patched, at the first guest's start and the last one's end.
# As long as one guest exists they stay as they are.
qemu-system-x86_64 -accel kvm -machine microvm -m 16 -nodefaults -no-user-config -display none -S >/run/keeper 2>&1 &
for _ in $(seq 60); do
    if ls /sys/kernel/debug/kvm/*/vcpu0 >/dev/null 2>&1; then
        break
    fi
    sleep 0.5
done

# The kernel was started with maxcpus=1: loading modules and patching code takes thousands of IPIs on several CPUs, each
# of which waits until the machine below has time for the other CPU's thread. On a busy machine that took minutes.
for cpu in /sys/devices/system/cpu/cpu*/online; do
    [ "$(cat "$cpu")" = 1 ] || echo 1 >"$cpu"
done
tell "cpus $(nproc), up $(cut -d ' ' -f 1 /proc/uptime) s"

guests=
for guest in /guests/[0-9]*; do
    run_guest "${guest##*/}" &
    guests="$guests $!"
done
# shellcheck disable=SC2086 # a list of process ids
wait $guests
tell "done"
sleep 0.2 # the last bytes are still on their way through the ports
poweroff -f
