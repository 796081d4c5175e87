# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# kvm: the host's own KVM. Absence, permission and a reduced KVM are three situations: nothing to run on, an environment
# to mend, and a system under test like any other.

kvm_device=${SPINKICK_KVM_DEVICE:-/dev/kvm} # another one only in kvm_test.sh

platform_defaults() {
    outside_view=virtual
    default_smp=4 default_mem=256 default_machine=q35 default_cpu=host default_timeout=120
    platform_words=()
    # A /dev/kvm without the processor's virtualisation behind it interprets its guest: its times are not a machine's.
    if grep -qEw 'vmx|svm' /proc/cpuinfo; then timing=real; else timing=emulated; fi
}

# Returns false if there is no KVM to use, with the fact in $kvm_lack and what to do about it, if anything, in $kvm_advice.
kvm_usable() {
    kvm_advice=
    if [[ ! -e $kvm_device ]]; then
        kvm_lack="no $kvm_device here"
    elif [[ ! -r $kvm_device || ! -w $kvm_device ]]; then
        kvm_lack="no permission for $kvm_device ($(stat -c '%A %U:%G' "$kvm_device"), and we are $(id -un))"
        kvm_advice="add the user to its group (usermod -aG kvm USER) and log in again"
    elif ! { : <>"$kvm_device"; } 2>/dev/null; then
        kvm_lack="$kvm_device cannot be opened"
        kvm_advice="load the module (modprobe kvm_amd or kvm_intel) and see dmesg"
    else
        return 0
    fi
    return 1
}

platform_check() {
    need_qemu
    kvm_usable && return
    [[ -n $kvm_advice ]] || skip "$kvm_lack"
    die "$kvm_lack: $kvm_advice"
}

platform_prepare() { :; }

platform_command() { image_command kvm "$(with_pv_unhalt "$cpu")"; }
