# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# A CD from which GRUB boots the image by multiboot2, on a BIOS or on UEFI.

# Debian's build of OVMF: the firmware, and the empty store of its variables.
readonly ovmf=${SPINKICK_OVMF:-/usr/share/OVMF}

# prepare_iso: $iso_file, with the kernel's command line in GRUB's script.
prepare_iso() {
    iso_file=$scratch/spinkick.iso
    uefi_vars=$scratch/uefi-vars.fd
    ((dry_run)) && return
    need_command grub-mkrescue grub-common
    need_command xorriso xorriso
    need_command mformat mtools
    if ((uefi)); then
        need_file /usr/lib/grub/x86_64-efi grub-efi-amd64-bin
        need_file "$ovmf/OVMF_CODE_4M.fd" ovmf
    else
        need_file /usr/lib/grub/i386-pc grub-pc-bin
    fi
    have_all || skip "${missing_things[*]} not found: $(install_line)"
    quietly "$scratch/grub.log" "$root/boot/make_iso.sh" "$image" "$iso_file" "${kernel_words[@]}" ||
        die "$(tail -n 1 "$scratch/grub.log")"
    ((!uefi)) || cp "$ovmf/OVMF_VARS_4M.fd" "$uefi_vars" || die "$ovmf/OVMF_VARS_4M.fd cannot be read"
}
