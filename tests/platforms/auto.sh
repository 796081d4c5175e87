# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# auto: the host's KVM if it is usable and fast, else a real KVM inside TCG.

# A KVM that interprets its guest is slower than TCG, so that the suite would time out: the image, which only lists its
# tests and ends, tells the two apart. Real hardware takes under half a second.
readonly probe_limit_s=4

kvm_is_fast() {
    local smp=1 mem=256 machine=q35 iso=0 status=0 pinning=() extra=() kernel_words=(list end=1)
    image_command kvm host
    setsid timeout -k 1 "$probe_limit_s" "${command[@]}" </dev/null >"$scratch/probe.log" 2>&1 &
    wait $! || status=$?
    ((status == 33))
}

# Sets $platform, and says why in one line.
choose_platform() {
    # shellcheck source=tests/platforms/kvm.sh
    source "$platforms/kvm.sh"
    if ! kvm_usable; then
        platform=nested-kvm
        say "auto: nested-kvm ($kvm_lack)"
    elif ((dry_run)); then
        platform=kvm
        say "auto: kvm (/dev/kvm is usable; how fast it is was not measured)"
    elif kvm_is_fast; then
        platform=kvm
        say "auto: kvm (/dev/kvm boots the image within $probe_limit_s s)"
    else
        platform=nested-kvm
        say "auto: nested-kvm (/dev/kvm does not boot the image within $probe_limit_s s)"
    fi
}
