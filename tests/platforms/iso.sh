# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# A CD from which GRUB boots the image by multiboot2, on a BIOS.

# The modules that a serial-only multiboot2 boot needs: the ISO then has 5 MB less and the BIOS less to read.
readonly grub_modules="multiboot2 serial normal iso9660 biosdisk configfile boot reboot"

# prepare_iso: $iso_file, with the kernel's command line in GRUB's script.
prepare_iso() {
    local tree=$scratch/iso word line=
    iso_file=$scratch/spinkick.iso
    ((dry_run)) && return
    need_command grub-mkrescue grub-common
    need_command xorriso xorriso
    need_command mformat mtools
    need_file /usr/lib/grub/i386-pc grub-pc-bin
    have_all || skip "${missing_things[*]} not found: $(install_line)"
    for word in "${kernel_words[@]}"; do
        [[ $word != *\'* ]] || die "--append $word: a quote cannot pass through GRUB's script"
        line+=" '$word'" # GRUB would take \$, ; and * for its own
    done
    mkdir -p "$tree/boot/grub"
    # GRUB reads what debuggers want too, 14 MB, and an emulated CD drive below an emulated hypervisor takes minutes.
    objcopy --strip-all "$image" "$tree/boot/spinkick.elf" || die "objcopy cannot read $image"
    cat >"$tree/boot/grub/grub.cfg" <<MENU
serial --unit=0 --speed=115200
terminal_output serial
multiboot2 /boot/spinkick.elf$line
boot
reboot
MENU
    quietly "$scratch/grub.log" grub-mkrescue -d /usr/lib/grub/i386-pc --install-modules="$grub_modules" --locales= \
        --fonts= --themes= -o "$iso_file" "$tree" || die "grub-mkrescue failed: $(tail -n 1 "$scratch/grub.log")"
}
