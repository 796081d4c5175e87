#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# grub_menu_test.sh PRESET OUT: the ISO of `cmake --build --target iso`, on each firmware that is here. Over the serial line the
# entry that lists the tests is chosen; on a BIOS from a CD and from a USB stick.
set -u -o pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1 out=$2
ovmf=/usr/share/OVMF

for tool in grub-mkrescue xorriso mformat qemu-system-x86_64; do
    command -v "$tool" >/dev/null || { echo "SKIP: $tool not found"; exit 77; }
done
mkdir -p "$out"
work=$(mktemp -d)
qemu=
trap '[[ -z $qemu ]] || kill "$qemu" 2>/dev/null; rm -rf "$work"' EXIT
[[ -n ${SPINKICK_ISO:-} ]] || flock "$root/build/$preset/lock" cmake --build "$root/build/$preset" --target iso >"$out/iso.log" 2>&1 ||
    { tail -n 5 "$out/iso.log"; exit 1; }
iso=${SPINKICK_ISO:-$root/build/$preset/spinkick.iso}

# seen REGEX LOG: waits until it is there.
seen() {
    local tries
    for ((tries = 0; tries < 1500; tries++)); do
        ! grep -aqE "$1" "$2" || return 0
        sleep 0.1
    done
    echo "$2: '$1' does not appear"
    return 1
}

# boot NAME KEY QEMU-ARGUMENT...: presses the key once the menu is there; returns the exit code of QEMU.
boot() {
    local log=$out/$1.log key=$2 code=0
    shift 2
    : >"$log"
    mkfifo "$work/keys"
    timeout -k 5 200 qemu-system-x86_64 -accel tcg -machine q35 -cpu qemu64 -smp 2 -m 256 -nodefaults -no-user-config -display none \
        -no-reboot -monitor none -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=4 "$@" <"$work/keys" >"$log" 2>&1 &
    qemu=$!
    exec 3>"$work/keys"
    if seen 'soak for 8 hours' "$log"; then
        printf '%s' "$key" >&3
    fi
    wait "$qemu" || code=$?
    qemu=
    exec 3>&-
    rm "$work/keys"
    return "$code"
}

failures=0
# check CODE NAME REGEX...: the end of that boot, and what its log has to say.
check() {
    local code=$1 log=$out/$2.log
    shift 2
    ((code == 33)) || { echo "$log: QEMU ended with $code, 33 (PASS) is wanted"; failures=$((failures + 1)); }
    local regex
    for regex in "$@"; do
        grep -aqE "$regex" <(tr -d '\r' <"$log") || { echo "$log: nothing matches '$regex'"; failures=$((failures + 1)); }
    done
}

media=(-cdrom "$iso" -boot d)
boot bios-list 'l' "${media[@]}"
check $? bios-list 'spinkick: boot: multiboot2' '^# test lock\.fifo'
# As a USB stick: the same file as a disk.
boot usb-list 'l' -device qemu-xhci -drive "if=none,id=stick,format=raw,readonly=on,file=$iso" -device usb-storage,drive=stick,bootindex=0
check $? usb-list 'spinkick: boot: multiboot2' '^# test lock\.fifo'
if [[ -e $ovmf/OVMF_CODE_4M.fd && -e /usr/lib/grub/x86_64-efi ]]; then
    cp "$ovmf/OVMF_VARS_4M.fd" "$work/vars.fd"
    boot uefi-list 'l' -drive "if=pflash,format=raw,unit=0,readonly=on,file=$ovmf/OVMF_CODE_4M.fd" \
        -drive "if=pflash,format=raw,unit=1,file=$work/vars.fd" "${media[@]}"
    check $? uefi-list 'spinkick: boot: multiboot2' '^# test lock\.fifo'
fi
((failures == 0))
