#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# truncated_madt_test.sh PRESET OUT: boots from an ISO whose GRUB replaces the firmware's MADT by one that is cut in the middle of an
# entry. The boot CPU must run on, and boot.tables must be an error that names the table.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1
out=$2

for tool in grub-mkrescue xorriso qemu-system-x86_64; do
    command -v "$tool" >/dev/null || { echo "SKIP: $tool not found"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/boot/grub"

# A MADT with the boot CPU, a second CPU, and an entry of 8 bytes of which 3 are there. Its own checksum is right: only the entry is cut.
byte() { printf '%b' "$(printf '\\x%02x' "$@")"; }
table() {
    printf 'APIC'
    byte "$length" 0 0 0 3 "$1"                       # length, revision, checksum
    printf 'SPNKCKCUTMADT '                          # OEM id and table id
    byte 1 0 0 0 0 0 0 0 1 0 0 0                      # revisions and creator, padded to 36 bytes
    byte 0 0 0xe0 0xfe 1 0 0 0                        # local APIC address, flags
    byte 0 8 0 0 1 0 0 0 0 8 1 1 1 0 0 0 0 8 2        # CPU 0, CPU 1, a cut entry
}
length=$((36 + 8 + 19))
table 0 >"$work/table"
(($(stat -c %s "$work/table") == length)) || { echo "the table has $(stat -c %s "$work/table") bytes, not $length"; exit 2; }
sum=$(od -An -v -tu1 "$work/table" | tr -s ' ' '\n' | awk '{ s += $1 } END { print (256 - s % 256) % 256 }')
table "$sum" >"$work/boot/madt.aml"

cp "$root/build/$preset/spinkick.elf" "$work/boot/"
cat >"$work/boot/grub/grub.cfg" <<'MENU'
serial --unit=0 --speed=115200
terminal_output serial
acpi --exclude=APIC /boot/madt.aml
multiboot2 /boot/spinkick.elf tests=boot.tables,smp.all_online end=1
boot
MENU
rm "$work/table"
grub-mkrescue -d /usr/lib/grub/i386-pc --install-modules="multiboot2 serial normal iso9660 biosdisk configfile boot acpi" --locales= \
    --fonts= --themes= -o "$work.iso" "$work" >/dev/null 2>&1 || { echo "grub-mkrescue failed"; exit 2; }
timeout -k 5 60 qemu-system-x86_64 -accel tcg -machine q35 -smp 2 -m 128 -nodefaults -display none -no-reboot -monitor none \
    -serial "file:$out/serial.log" -device isa-debug-exit,iobase=0xf4,iosize=4 -cdrom "$work.iso"
code=$?
rm -f "$work.iso"
tr -d '\r' <"$out/serial.log" | grep -aE 'acpi|boot.tables|all_online|verdict' | tail -n 6
((code == 37)) || { echo "QEMU ended with $code, 37 expected (verdict ERROR)"; exit 1; }
grep -aqE 'not ok [0-9]+ boot.tables # ERROR .*(MADT|APIC)' "$out/serial.log" || { echo "boot.tables does not name the table"; exit 1; }
grep -aqE 'ok [0-9]+ smp.all_online' "$out/serial.log" || { echo "the boot CPU did not run on"; exit 1; }
