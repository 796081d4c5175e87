# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# kvm: the host's own KVM. Absence, permission and a reduced KVM are three situations: nothing to run on, an environment
# to mend, and a system under test like any other.

platform_defaults() {
    default_smp=4 default_mem=256 default_machine=q35 default_cpu=host default_timeout=120
    platform_words=()
    # A /dev/kvm without the processor's virtualisation behind it interprets its guest: its times are not a machine's.
    if grep -qEw 'vmx|svm' /proc/cpuinfo; then timing=real; else timing=emulated; fi
}

# Sets $kvm_lack and returns false if /dev/kvm cannot be opened.
kvm_usable() {
    if [[ ! -e /dev/kvm ]]; then
        kvm_lack="no /dev/kvm here"
    elif ! { : <>/dev/kvm; } 2>/dev/null; then
        kvm_lack="no permission for /dev/kvm ($(stat -c '%A %U:%G' /dev/kvm), we are $(id -un))"
    else
        return 0
    fi
    return 1
}

platform_check() {
    need_qemu
    kvm_usable || case $kvm_lack in
        no\ permission*) die "$kvm_lack: add the user to the group kvm (usermod -aG kvm USER, then log in again)" ;;
        *) skip "$kvm_lack" ;;
    esac
}

platform_prepare() { :; }

platform_command() {
    image_command kvm "$(with_pv_unhalt "$cpu")"
}
