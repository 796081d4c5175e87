#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
#
# The first and only process of a Linux dom0: its guests are domains, started by xl. What a domain writes to its console
# ring is logged by xenconsoled, into a file that is the guest's virtio port; an HVM domain's serial line leads there
# directly.

# shellcheck source=tests/platforms/outer-init.sh
. /outer-init.sh

export PATH="$PATH:/usr/lib/xen-4.17/bin"
mount -t tmpfs none /run
mkdir -p /dev/pts /run/xen /run/xenstored /run/lock
mount -t devpts none /dev/pts # xenconsoled gives every console a terminal
mount -t xenfs none /proc/xen || refuse "no xenfs: the kernel needs CONFIG_XENFS"
grep -q control_d /proc/xen/capabilities || refuse "this Linux is no dom0: /proc/xen/capabilities is $(cat /proc/xen/capabilities)"
read -r uptime _ </proc/uptime
tell "fact dom0_kernel $(uname -r)"
tell "up $uptime s, Linux $(uname -r), Xen $(cat /sys/hypervisor/version/major).$(cat /sys/hypervisor/version/minor)"

# The daemon leaves its starter before it knows whether it can work; nobody else has a time limit of his own.
xenstored --pid-file /run/xenstored.pid >/run/xenstored.log 2>&1 || refuse "xenstored: $(tail -n 1 /run/xenstored.log)"
timeout 30 xen-init-dom0 >/run/init-dom0 2>&1 || refuse "xen-init-dom0: $(tail -qn 1 /run/init-dom0 /run/xenstored.log)"

attempts=1
silence_s=60
# GRUB reads a CD before the image can say anything.
grep -q '^boot' /guests/[0-9]* && silence_s=180

# start_guest K PORT: its configuration is /guests/K. xl -F stays until the domain has ended.
start_guest() {
    xl create -F "/guests/$1" </dev/null >"/run/xl-$1" 2>&1 &
    guest_pid=$!
}
# xl waits for ever for a xenstored that has died; the runner has to hear of the guests' ends all the same.
stop_guest() {
    timeout 15 xl destroy "vm$1" >/dev/null 2>&1
    kill -9 "$2" 2>/dev/null
}

# A domain that was not made, or that xl lost, has no reason.
ending_of() {
    reason=$(sed -n 's/.*has shut down, reason code \([0-9]*\).*/\1/p' "/run/xl-$1" | head -n 1)
    if [ -n "$reason" ]; then
        echo "shutdown $reason"
    else
        echo refused
    fi
}
complaints_of() { grep -iE 'error|fail|invalid|unknown' "/run/xl-$1" | head -n 8; }

# Before any domain is there: a console that has no log yet is logged from then on only.
for config in /guests/[0-9]*; do
    guest=${config##*/}
    if grep -q '^serial' "$config"; then
        ln -s "$(wait_for_port "vm$guest")" "/run/serial-$guest"
    else
        ln -s "$(wait_for_port "vm$guest")" "/var/log/xen/console/guest-vm$guest.log"
    fi
done
xenconsoled --log=guest --log-dir=/var/log/xen/console --pid-file=/run/xenconsoled.pid || refuse "xenconsoled ends with $?"

# What Xen says that it does with the guests' vCPUs, on dom0's console, which is host.log.
(sleep 4 && xl vcpu-list && { xl sched-credit || xl sched-credit2; }) 2>&1 &

run_guests
xl dmesg | tail -n 40 # on dom0's console, which is host.log
finish
