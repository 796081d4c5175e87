# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# xen-pvh, xen-pv: Debian's Xen on a machine whose SVM is emulated by TCG, with the image as its dom0. More vCPUs than
# CPUs (--smp over --pcpus) is the overcommit axis.

platform_defaults() {
    outside_view=physical
    default_smp=4 default_mem=256 default_machine=q35 default_timeout=120
    # Xen's idle loop gives MWAIT a hint in ECX, at which TCG raises #GP.
    default_cpu=EPYC,-monitor
    platform_words=(compact=1 duration_ms=10) # each line is a hypercall, and each byte goes out by an emulated UART
    timing=emulated
}

platform_check() { need_qemu; }

# Xen keeps COM1 and says all of what it has to say there.
readonly xen_console_words="console=com1 com1=115200,8n1 loglvl=all guest_loglvl=all"

# unpack_xen: sets $xen, the hypervisor as QEMU's multiboot loader takes it: unpacked, beside the package it is from.
unpack_xen() {
    lock_cache
    unpack_package 'xen-hypervisor-4\.17-amd64'
    xen=$unpacked/xen-4.17
    if ((!dry_run)) && [[ ! -e $xen ]]; then
        gunzip -c "$unpacked/boot/xen-4.17-amd64.gz" >"$xen.part" ||
            die "cannot unpack the hypervisor of $unpacked"
        mv "$xen.part" "$xen"
    fi
    unlock_cache
}

platform_prepare() { unpack_xen; }

# sched=credit: on a loaded machine Xen's default, credit2, was left with a runnable vCPU in its queue and all CPUs idle in 4 of
# 24 boots (docs/decisions/xen-scheduler.md). The last word of a kind counts, so --xen-args can bring it back.
platform_command() {
    local dom0=
    [[ $platform == xen-pv ]] || dom0=" dom0=pvh dom0-iommu=none"
    [[ $image != *\ * ]] || die "$image: QEMU ends a module's name at a blank; move the folder"
    command=(qemu-system-x86_64 -accel tcg -machine "$machine" -cpu "$cpu" -smp "$pcpus" -m $((mem + 512))
        "${bare_machine[@]}" -monitor none "${serial_line[@]}" "${exit_device[@]}" -kernel "$xen"
        -append "$xen_console_words sched=credit$dom0 dom0_mem=${mem}M dom0_max_vcpus=$smp${xen_args:+ $xen_args}"
        -initrd "$(option_value "$image ${kernel_words[*]}")" "${extra[@]}")
}
