#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# make_iso.sh IMAGE OUTPUT [KERNEL ARGUMENTS...]: a CD and USB-stick image from which GRUB boots IMAGE by multiboot2, on a
# BIOS and on UEFI, as far as GRUB's files for them are here. Without arguments it shows a menu; with them it boots
# at once and ends the machine if that fails. boot/grub-menu.cfg has the menu.
set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
image=$1 output=$2
shift 2

# /usr/lib/grub, or the folder of packages that were only unpacked.
grub=${SPINKICK_GRUB:-/usr/lib/grub}
die() { printf 'make_iso.sh: %s\n' "$*" >&2; exit 2; }
for tool in grub-mkrescue xorriso mformat objcopy; do
    command -v "$tool" >/dev/null || die "$tool not found: apt-get install grub-common xorriso mtools binutils"
done
firmwares=()
for firmware in i386-pc x86_64-efi; do
    [[ ! -e $grub/$firmware/multiboot2.mod ]] || firmwares+=("$firmware")
done
((${#firmwares[@]})) || die "$grub has no GRUB for a PC: apt-get install grub-pc-bin grub-efi-amd64-bin"

# A serial-only multiboot2 boot needs no more: the CD then has 5 MB less and the BIOS less to read. What reads the disk is in
# the core that each firmware loads.
modules="multiboot2 serial terminal normal iso9660 configfile boot reboot"

work=$(mktemp -d) || die "no place for temporary files"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/boot/grub"
# GRUB reads what debuggers want too, 14 MB, and an emulated CD drive below an emulated hypervisor takes minutes.
objcopy --strip-all "$image" "$work/tree/boot/spinkick.elf" || die "objcopy cannot read $image"
if (($#)); then
    line=
    for word in "$@"; do
        [[ $word != *\'* ]] || die "$word: a quote cannot pass through GRUB's script"
        line+=" '$word'" # GRUB would take \$, ; and * for its own
    done
    cat >"$work/tree/boot/grub/grub.cfg" <<MENU
serial --unit=0 --speed=115200
terminal_output serial
multiboot2 /boot/spinkick.elf$line
boot
reboot
MENU
else
    cp "$here/grub-menu.cfg" "$work/tree/boot/grub/grub.cfg" || die "$here/grub-menu.cfg cannot be read"
fi

# With -d grub-mkrescue takes one firmware, without it all that the system has: those of Xen too, which have no multiboot2, and
# for whose sake each then gets all its modules.
options=(--locales= --fonts= --themes=)
if ((${#firmwares[@]} == 1)) || [[ $grub != /usr/lib/grub ]]; then
    options+=(-d "$grub/${firmwares[0]}" --install-modules="$modules")
else
    all_have_it=1
    for platform in "$grub"/*/modinfo.sh; do [[ -e ${platform%/*}/multiboot2.mod ]] || all_have_it=0; done
    ((!all_have_it)) || options+=(--install-modules="$modules")
fi
grub-mkrescue "${options[@]}" -o "$work/image.iso" "$work/tree" >"$work/log" 2>&1 ||
    die "grub-mkrescue failed: $(grep -v '^xorriso' "$work/log" | tail -n 1)"
mv "$work/image.iso" "$output" || die "$output cannot be written"
printf 'make_iso.sh: %s boots on %s\n' "$output" "${firmwares[*]}"
