#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# kvm.sh's answers to a KVM device that is absent, forbidden, or a file of another kind. root may open everything, so as
# root this asks as somebody who may not.
set -u -o pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
touch "$scratch/forbidden"
chmod 000 "$scratch/forbidden"
mkdir -m 777 "$scratch/folder" # of a kind that opens for reading alone

drop=()
((EUID != 0)) || drop=(setpriv --reuid 65534 --regid 65534 --clear-groups)
code=$(cat "$folder"/{lib,packages,qemu,kvm}.sh) # given as text: the other user may not reach the source folder

failed=0
# expect STATUS TEXT DEVICE
expect() {
    local said status=0
    said=$(SPINKICK_KVM_DEVICE=$3 "${drop[@]}" bash -c "install=0; $code"$'\nplatform_check' 2>&1) || status=$?
    if [[ $status != "$1" || $said != *"$2"* || $said == *$'\n'* ]]; then
        echo "$3: exit code $status and \"$said\"; $1 and one line with \"$2\" is wanted"
        failed=1
    fi
}
expect 77 "SKIP: no $scratch/nothing here" "$scratch/nothing"
expect 2 "no permission for $scratch/forbidden (---------- $(id -un):$(id -gn)" "$scratch/forbidden"
expect 2 "usermod -aG kvm" "$scratch/forbidden"
expect 2 "modprobe kvm_amd" "$scratch/folder"
exit "$failed"
