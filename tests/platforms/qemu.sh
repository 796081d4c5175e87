# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# The QEMU that runs the image itself: the same machine under TCG, under the host's KVM and inside nested-kvm.

need_qemu() {
    need_command qemu-system-x86_64 qemu-system-x86
    have_all || skip "${missing_things[*]} not found: $(install_line)"
}

# Only what a test needs: no network card, no VGA, no option ROMs to run through, no file in a home directory.
readonly -a bare_machine=(-nodefaults -no-user-config -display none -no-reboot)

# The image ends QEMU by a write to this port (docs/report-format.md).
readonly -a exit_device=(-device "isa-debug-exit,iobase=0xf4,iosize=4")

# The guest's serial line: what it says is this script's to read; with --interactive it is a socket, for both directions.
serial_line=(-serial stdio)
serial_socket() { printf 'socket,id=%s,path=%s,server=on,wait=on' "$1" "$(option_value "$scratch/serial.sock")"; }
use_serial_socket() { serial_line=(-chardev "$(serial_socket serial)" -serial chardev:serial); }

# image_command ACCELERATOR CPU: sets $command, a QEMU that runs the image with its serial port on standard output.
image_command() {
    command=("${pinning[@]}" qemu-system-x86_64 -accel "$1" -machine "$machine" -cpu "$2" -smp "$smp" -m "$mem"
        "${bare_machine[@]}" -monitor none "${serial_line[@]}" "${exit_device[@]}")
    if ((iso)); then
        command+=(-cdrom "$iso_file" -boot d)
        ((!uefi)) || command+=(-drive "if=pflash,format=raw,unit=0,readonly=on,file=$(option_value "$ovmf/OVMF_CODE_4M.fd")"
            -drive "if=pflash,format=raw,unit=1,file=$(option_value "$uefi_vars")")
    else
        command+=(-kernel "$image" -append "${kernel_words[*]}")
    fi
    command+=("${extra[@]}")
}

# with_pv_unhalt MODEL: KVM's named CPU models do not offer the kick, and then the PV locks have nothing to test.
with_pv_unhalt() {
    case $1 in
    *kvm-pv-unhalt* | *kvm=off*) printf '%s' "$1" ;; # the caller has decided
    *) printf '%s,+kvm-pv-unhalt' "$1" ;;
    esac
}

# on_pcpus N: sets $pinning, a prefix that keeps a command on the first N CPUs that this script may use.
on_pcpus() {
    local part allowed=()
    for part in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
        mapfile -t -O "${#allowed[@]}" allowed < <(seq "${part%-*}" "${part#*-}")
    done
    (($1 <= ${#allowed[@]})) || die "--pcpus $1: this machine allows ${#allowed[@]} CPUs; nested-kvm and xen take more"
    local IFS=,
    pinning=(taskset -c "${allowed[*]:0:$1}")
}

# refusal LOG: QEMU's reason for not starting, without its warnings.
refusal() { grep -v 'warning:' "$1" | head -n 1; }

# is_host_limit TEXT: the text says that this QEMU cannot have what was asked for, not that the request is wrong.
is_host_limit() {
    [[ $1 == *X2APIC* || $1 == *"-accel "*"Property '"*"' not found" ]]
}
