# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash disable=SC2034,SC2154 # variables are shared with the script that sources this
#
# What the first process of every outer machine does: it starts the guests that /guests describes and tells the runner
# how each of them ended. It speaks on the virtio port `control`, one line per event; each guest's serial line has a port
# of its own, so that the runner sees every byte at once and none is mixed with another's.
#
# The script that sources this has: attempts, silence_s, and
#   start_guest K PORT     sets $guest_pid, a process that ends with the guest
#   stop_guest K PID       ends it
#   ending_of K STATUS     prints how it ended, as the runner's platform_boot reads it
#   complaints_of K        prints what whoever started it had to say

export PATH=/bin:/usr/bin:/usr/sbin
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

# wait_for_port NAME: the kernel learns the names of the ports from the device, some time after it has found it.
wait_for_port() {
    tries=0
    while [ -z "$(port "$1")" ] && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    port "$1"
}

# Bytes that have left by a port, as the kernel counts them; the guest itself must not be asked.
bytes_sent() { sed -n 's/^bytes_sent: //p' "/sys/kernel/debug/virtio-ports/${1##*/}"; }

control=$(wait_for_port control)
if [ -z "$control" ]; then
    echo "spinkick host: error: no virtio port: the kernel needs CONFIG_VIRTIO_CONSOLE and CONFIG_VIRTIO_PCI"
    poweroff -f
fi
exec 3>"$control"
tell() { echo "$*" >&3; }

# refuse TEXT: there will be no guests.
refuse() {
    tell "error $*"
    sleep 0.2
    poweroff -f
}

limit_s=$(cat /guests/limit_s)

# watch K PID PORT BYTES_BEFORE FILE: ends a guest that says nothing for silence_s, or no verdict in time; FILE then says
# which. The time for a verdict runs from the first byte on.
watch() {
    waited=0
    while [ "$(bytes_sent "$3")" = "$4" ]; do
        if [ "$waited" -ge "$silence_s" ]; then
            echo silent >"$5"
            stop_guest "$1" "$2"
            return
        fi
        sleep 1
        waited=$((waited + 1))
    done
    sleep "$limit_s"
    echo timeout >"$5"
    stop_guest "$1" "$2"
}

# let_copy_end PID: what the guest has written last is still on its way to its port. A guest that never opened its line
# leaves a copy that waits for it.
let_copy_end() {
    [ -n "$1" ] || return 0
    for _ in $(seq 50); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    kill "$1" 2>/dev/null
}

# run_guest K: until it has ended.
run_guest() {
    guest=$1
    serial=$(wait_for_port "vm$guest")
    for attempt in $attempts; do
        ended=/run/ended-$guest-$attempt
        before=$(bytes_sent "$serial")
        tell "vm $guest start $attempt"
        start_guest "$guest" "$serial"
        watch "$guest" "$guest_pid" "$serial" "$before" "$ended" &
        watcher=$!
        wait "$guest_pid"
        ending=$(ending_of "$guest" $?)
        let_copy_end "${guest_copier:-}"
        kill "$watcher" 2>/dev/null
        complaints_of "$guest" | while IFS= read -r line; do tell "vm $guest says $line"; done
        if [ -e "$ended" ]; then
            ending=$(cat "$ended")
        fi
        # Only where silence is known to be a fault of the machine below is it one, and another start allowed.
        if [ "$ending" = silent ] && [ "$attempts" = 1 ]; then
            ending=timeout
        fi
        [ "$ending" = silent ] || break
        tell "vm $guest silent $attempt"
    done
    [ ! -e "/run/counters-$guest" ] || tell "vm $guest counters$(cat "/run/counters-$guest")"
    tell "vm $guest end $ending"
}

# The kernel was started with maxcpus=1: loading modules and patching code takes thousands of IPIs on several CPUs, each
# of which waits until the machine below has time for the other CPU's thread. On a busy machine that took minutes.
start_other_cpus() {
    for cpu in /sys/devices/system/cpu/cpu*/online; do
        [ "$(cat "$cpu")" = 1 ] || echo 1 >"$cpu"
    done
    tell "cpus $(nproc), up $(cut -d ' ' -f 1 /proc/uptime) s"
}

run_guests() {
    guests=
    for guest in /guests/[0-9]*; do
        run_guest "${guest##*/}" &
        guests="$guests $!"
    done
    # shellcheck disable=SC2086 # a list of process ids
    wait $guests
    tell "done"
}

finish() {
    sleep 0.2 # the last bytes are still on their way through the ports
    poweroff -f
}
