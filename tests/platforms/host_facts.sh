# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# What of the host decides how a lock does: its kernel and KVM with their settings, its Xen and the scheduler. Each is a
# NAME=VALUE for the context record of the run, from this machine or, where a machine was started around the image, from
# that one. What is not there is not a fact.

# fact NAME VALUE: one more for this boot.
fact() { [[ -z $2 ]] || host_facts+=("$1=$2"); }

# first_line FILE: nothing if it cannot be read.
first_line() { [[ ! -r $1 ]] || head -n 1 "$1"; }

# The machine that QEMU runs on. For platforms without a machine in between it is the host.
facts_of_this_machine() {
    fact machine_kernel "$(uname -r)"
    fact machine_qemu "$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')"
    fact machine_cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
    fact host_kvm "$host_kvm"
    fact steal_limit "$steal_limit" # not the host's, but what its figures have to be read with
    fact machine_governor "$(first_line /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)"
    [[ $platform == kvm ]] || return 0
    local name
    for name in kvm/halt_poll_ns kvm_intel/ple_gap kvm_intel/ple_window kvm_amd/pause_filter_count \
        kvm_amd/pause_filter_thresh; do
        fact "${name##*/}" "$(first_line "/sys/module/${name/\//\/parameters\/}")"
    done
    fact srcversion "$(first_line /sys/module/kvm/srcversion)"
}

# facts_of_xen LOG: what Xen has said on its console. Its scheduler has to be the one that its command line names, last.
facts_of_xen() {
    local wanted said
    said=$(tr -d '\r' <"$1" | sed -n 's/.*(XEN) Using scheduler: .*(\([a-z0-9]*\)).*/\1/p' | head -n 1)
    fact scheduler "$said"
    wanted=$(grep -oE '\bsched=[a-z0-9]+' <<<"${command[*]}" | tail -n 1)
    [[ -z $said || $said == "${wanted#sched=}" ]] || warn "Xen uses the scheduler $said, not ${wanted#sched=}: not a name that it knows"
}

# vcpus_of_xen LOG: a line if Xen gave its dom0 fewer vCPUs than --smp asked for; it says nothing itself.
vcpus_of_xen() {
    local given limit=
    given=$(tr -d '\r' <"$1" | sed -n 's/^# json {"type":"context".*"cpus_found":\([0-9]*\),.*/\1/p' | head -n 1)
    [[ -n $given && $smp =~ ^[0-9]+$ ]] || return 0
    [[ $platform != xen-pvh ]] || limit=': a PVH guest of Xen 4.17 has at most 128'
    ((given >= smp)) || warn "Xen gives $given of $smp vCPUs$limit"
}
