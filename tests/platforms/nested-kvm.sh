# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# nested-kvm: a real Linux with its real KVM, on a machine whose SVM is emulated by TCG. That host's first process is
# nested-kvm-init.sh; the image runs in its guests, whose serial lines reach this script by one virtio port each.

# shellcheck source=tests/platforms/outer.sh
source "$platforms/outer.sh"

# From power-on to the host's first word: 4 s on an idle machine, a minute on one with six times its load.
readonly host_boot_s=100
# For a guest that three times says nothing.
readonly silent_guest_s=50

platform_defaults() {
    default_smp=4 default_mem=128 default_machine=microvm default_cpu=host default_timeout=120
    # A byte costs the guest 0.3 ms there.
    platform_words=(compact=1)
    # Its counters go with the guest: it stays until they have been read.
    ((!host_counters)) || platform_words+=(linger_ms=1500)
    # In the monitor what comes in is what somebody types.
    ((!host_counters || interactive)) || platform_words+=(sync=on)
    timing=emulated
}

platform_check() {
    ((pcpus <= 254)) || die "--pcpus $pcpus: $platform takes at most 254, beside a CPU without guests"
    need_qemu
    need_command xz xz-utils
    need_command dpkg-deb dpkg
    [[ -z $host_kvm ]] || check_host_kvm
    have_all || die "${missing_things[*]} not found: $(install_line)"
}

# host_kernel_files: sets $vmlinuz and $modules, the folder of its modules or empty.
find_host_kernel() {
    local regex version place
    case ${host_kernel:-6.1} in
    */*)
        [[ -r $host_kernel ]] || die "--host-kernel $host_kernel: no such file"
        vmlinuz=$host_kernel
        version=$(kernel_banner "$vmlinuz")
        version=${version%% *}
        modules=
        for place in "$(dirname "$vmlinuz")" "$(dirname "$vmlinuz")/.."; do
            [[ ! -d $place/lib/modules/$version ]] || modules=$place/lib/modules/$version
        done
        return
        ;;
    6.1) regex='linux-image-6\.1\.0-[0-9]+-cloud-amd64' ;;
    6.12) regex='linux-image-6\.12\.[0-9]+\+deb12-cloud-amd64(-unsigned)?' ;;
    linux-image-*) regex=${host_kernel//./\\.} regex=${regex//+/\\+} ;;
    *) die "--host-kernel $host_kernel: 6.1, 6.12, a linux-image- package, or a path to a kernel is wanted" ;;
    esac
    unpack_package "$regex"
    vmlinuz=$(echo "$unpacked"/boot/vmlinuz-*)
    modules=$(echo "$unpacked"/lib/modules/*)
}

# What the host needs beyond a bare kernel; each with the modules that it depends on.
readonly -a host_modules=(kvm-amd virtio_pci virtio_console)

# Files of the host's QEMU, which lie in one folder or another.
readonly -a firmware=(bios-256k.bin bios-microvm.bin qboot.rom linuxboot_dma.bin pvh.bin kvmvapic.bin)

# prepare_host_tree FOLDER: all that the host has, but for the image and the guests' command lines.
prepare_host_tree() {
    local tree=$1 qemu name file
    start_host_tree "$tree" "$platforms/nested-kvm-init.sh"
    mkdir -p "$tree/usr/share/qemu"
    for name in "${host_modules[@]}"; do
        [[ -z $modules ]] || add_module "$tree/modules" "$name"
    done

    qemu=$(command -v qemu-system-x86_64)
    install -D "$qemu" "$tree/usr/bin/qemu-system-x86_64" # it looks for its firmware relative to itself
    add_libraries "$tree" "$qemu"
    for name in "${firmware[@]}"; do
        for file in /usr/share/{qemu,seabios,qboot}/"$name"; do
            [[ ! -e $file ]] || cp -L "$file" "$tree/usr/share/qemu/"
        done
    done
}

platform_prepare() {
    ((vms * (mem + 64) <= 8192)) || die "--vms $vms with --mem $mem: the guests have more than 8 GiB together"
    lock_cache
    find_host_kernel
    [[ -z $host_kvm ]] || prepare_host_kvm
    unpack_package busybox-static
    busybox=$unpacked/bin/busybox
    host_initrd=$scratch/initrd
    ((dry_run)) || prepare_host nested-kvm "$vmlinuz" ${modules:+"$modules"} ${kvm_modules:+"$kvm_modules"} "$(command -v qemu-system-x86_64)"
    unlock_cache
}

# guest_command: sets $guest, all but the serial port and the monitor, which the host adds.
guest_command() {
    guest=(qemu-system-x86_64 -accel kvm -machine "$machine" -cpu "$(with_pv_unhalt "$cpu")" -smp "$smp" -m "$mem"
        "${bare_machine[@]}" "${exit_device[@]}" -kernel /image -append "${kernel_words[*]}" "${extra[@]}")
}

# One CPU more than the guests have: QEMU's CPUs, whenever they restore their FPU, clear a flag in a word of the *first* CPU
# without asking it, and so undo what that one has just changed there: whether nested paging is on, whether interrupts are. A
# guest that runs on it then gets its host's registers, or its host's memory is overwritten (docs/known-deviations.md). Nobody
# runs guests on the first one.
readonly cpus_without_guests=1

# The host's own kernel arguments. Below it all CPUs read one TSC, but Linux takes that for granted only if told so
# (tsc=reliable); KVM otherwise moves a guest's TSC each time its vCPU moves, which shows as skew. A TCG on a busy machine
# delivers the timer too late for the check of its wiring, which then panics (no_timer_check). For maxcpus=1 see the init.
readonly host_words="console=ttyS0 quiet mitigations=off panic=-1 tsc=reliable no_timer_check maxcpus=1"

platform_command() {
    guest_command
    host_ports "$1"
    command=(qemu-system-x86_64 -accel tcg -machine q35 -cpu "EPYC,+svm,+npt" -smp $((pcpus + cpus_without_guests)) -m $((768 + vms * (mem + 64)))
        "${bare_machine[@]}" -monitor none -kernel "$vmlinuz" -initrd "$host_initrd"
        -append "$host_words" -serial "file:$(option_value "$1/host.log")" "${ports[@]}")
}

platform_commands() {
    quoted "${command[@]}"
    printf 'and in there, %s at once:\n' "$vms"
    quoted "${guest[@]}"
}

# write_guest VM: one word a line, as its init reads it.
write_guest() { printf '%s\n' "${guest[@]}"; }
