# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# nested-kvm: a real Linux with its real KVM, on a machine whose SVM is emulated by TCG. That host's first process is
# nested-kvm-init.sh; the image runs in its guests, whose serial lines reach this script by one virtio port each.

# From power-on to the host's first word: 4 s on an idle machine, a minute on one with six times its load.
readonly host_boot_s=100
# For a guest that three times says nothing.
readonly silent_guest_s=50

platform_defaults() {
    default_smp=4 default_mem=128 default_machine=microvm default_cpu=host default_timeout=120
    # A byte costs the guest 0.3 ms there.
    platform_words=(compact=1)
    timing=emulated
}

platform_check() {
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

# kernel_banner BZIMAGE: what its header points to (offset 0x20e, relative to 0x200), the release first.
kernel_banner() {
    local at
    at=$(od -An -tu2 -j 0x20e -N 2 "$1")
    tail -c "+$((at + 0x201))" "$1" | head -c 256 | tr '\0' '\n' | sed -n 1p
}

# What the host needs beyond a bare kernel; each with the modules that it depends on.
readonly -a host_modules=(kvm-amd virtio_pci virtio_console)

# Files of the host's QEMU, which lie in one folder or another.
readonly -a firmware=(bios-256k.bin bios-microvm.bin qboot.rom linuxboot_dma.bin pvh.bin kvmvapic.bin)

# add_module FOLDER NAME: copies it there behind all that it depends on, numbered in that order.
add_module() {
    local folder=$1 name=$2 file target need
    [[ -z $(find "$folder" -name "*-${name//[-_]/[-_]}.ko") ]] || return 0
    file=${kvm_modules:-/nowhere}/$name.ko
    [[ -e $file ]] || file=$(find "$modules/" -name "${name//[-_]/[-_]}.ko" -o -name "${name//[-_]/[-_]}.ko.xz" | head -n 1)
    [[ -n $file ]] || return 0 # built into the kernel, or the host's init will say what it lacks
    target=$scratch/$name.ko
    case $file in
    *.xz) xz -dc "$file" >"$target" || die "cannot unpack $file" ;;
    *) cp "$file" "$target" ;;
    esac
    for need in $(grep -aoz '^depends=.*' "$target" | tr '\0,' '  ' | sed 's/depends=//'); do
        add_module "$folder" "$need"
    done
    mv "$target" "$folder/$(printf '%02d' "$(find "$folder" -name '*.ko' | wc -l)")-$name.ko"
}

# make_host_tree FOLDER: all that the host has, but for the image and the guests' command lines.
make_host_tree() {
    local tree=$1 qemu library name file
    mkdir -p "$tree"/{bin,proc,sys,dev,run,tmp,modules,usr/share/qemu}
    cp "$busybox" "$tree/bin/busybox"
    ln -s busybox "$tree/bin/sh"
    install -m 755 "$platforms/nested-kvm-init.sh" "$tree/init"

    for name in "${host_modules[@]}"; do
        [[ -z $modules ]] || add_module "$tree/modules" "$name"
    done

    qemu=$(command -v qemu-system-x86_64)
    install -D "$qemu" "$tree/usr/bin/qemu-system-x86_64" # it looks for its firmware relative to itself
    for library in $(ldd "$qemu" | grep -o '/[^ ]*'); do
        install -D "$library" "$tree$library"
    done
    for name in "${firmware[@]}"; do
        for file in /usr/share/{qemu,seabios,qboot}/"$name"; do
            [[ ! -e $file ]] || cp -L "$file" "$tree/usr/share/qemu/"
        done
    done
}

# archive FOLDER: as the kernel unpacks it.
archive() { (cd "$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null); }

# The large and lasting part of the initrd is made once for one host kernel, one QEMU and one init; the kernel unpacks
# archives one after another, so that a new image only means a new small one behind it. It is not compressed: under TCG
# the host would need 1.3 s to unpack it.
prepare_host() {
    local key
    key=$(stat -Lc '%n %s %Y' "$vmlinuz" ${modules:+"$modules"} ${kvm_modules:+"$kvm_modules"} "$busybox" "$(command -v qemu-system-x86_64)" |
        cat - "$platforms/nested-kvm.sh" "$platforms/nested-kvm-init.sh" | sha256sum | cut -c 1-16)
    host_archive=$cache/nested-kvm-$key.cpio
    if [[ -e $host_archive ]]; then
        touch "$host_archive"
        return
    fi
    say "making the initrd of nested-kvm's host (once for this kernel and this QEMU)"
    make_host_tree "$scratch/host"
    archive "$scratch/host" >"$host_archive.part" || die "cannot write $host_archive.part"
    # Where the next archive starts is up to its magic, which the kernel looks for at multiples of four.
    truncate -s %4 "$host_archive.part"
    mv "$host_archive.part" "$host_archive"
    rm -rf "$scratch/host"
    find "$cache" -maxdepth 1 -name 'nested-kvm-*.cpio' -printf '%T@ %p\n' | sort -rn | tail -n +5 | cut -d ' ' -f 2- |
        xargs -r -d '\n' rm -f
}

platform_prepare() {
    ((vms * (mem + 64) <= 8192)) || die "--vms $vms with --mem $mem: the guests have more than 8 GiB together"
    lock_cache
    find_host_kernel
    [[ -z $host_kvm ]] || prepare_host_kvm
    unpack_package busybox-static
    busybox=$unpacked/bin/busybox
    host_initrd=$scratch/initrd
    ((dry_run)) || prepare_host
    unlock_cache
}

# guest_command: sets $guest, all but the serial port, which the host adds.
guest_command() {
    guest=(qemu-system-x86_64 -accel kvm -machine "$machine" -cpu "$(with_pv_unhalt "$cpu")" -smp "$smp" -m "$mem"
        "${bare_machine[@]}" -monitor none "${exit_device[@]}" -kernel /image -append "${kernel_words[*]}" "${extra[@]}")
}

# The host's own kernel arguments. Below it all CPUs read one TSC, but Linux takes that for granted only if told so
# (tsc=reliable); KVM otherwise moves a guest's TSC each time its vCPU moves, which shows as skew. A TCG on a busy machine
# delivers the timer too late for the check of its wiring, which then panics (no_timer_check). For maxcpus=1 see the init.
readonly host_words="console=ttyS0 quiet mitigations=off panic=-1 tsc=reliable no_timer_check maxcpus=1"

# One guest's serial line is this QEMU's standard output, which is watched; the others go straight to their files. Not as
# `stdio`: at the end of standard input QEMU would close the port.
platform_command() {
    local dir=$1 vm
    guest_command
    command=(qemu-system-x86_64 -accel tcg -machine q35 -cpu "EPYC,+svm,+npt" -smp "$pcpus" -m $((768 + vms * (mem + 64)))
        "${bare_machine[@]}" -monitor none -kernel "$vmlinuz" -initrd "$host_initrd"
        -append "$host_words" -serial "file:$(option_value "$dir/host.log")"
        -device "virtio-serial-pci,max_ports=$((vms + 2))"
        -chardev "file,id=control,path=$(option_value "$dir/control.log")"
        -device "virtserialport,chardev=control,name=control"
        -chardev "file,id=vm1,path=/dev/stdout" -device "virtserialport,chardev=vm1,name=vm1")
    for ((vm = 2; vm <= vms; vm++)); do
        command+=(-chardev "file,id=vm$vm,path=$(option_value "$dir/vm-$vm/serial.log")"
            -device "virtserialport,chardev=vm$vm,name=vm$vm")
    done
}

platform_commands() {
    quoted "${command[@]}"
    printf 'and in there, %s at once:\n' "$vms"
    quoted "${guest[@]}"
}

# The initrd of this boot: the host's archive, and one with the image and what the guests are.
make_initrd() {
    local tree=$scratch/guests vm
    rm -rf "$tree"
    mkdir -p "$tree/guests"
    cp "$image" "$tree/image"
    echo "$timeout_s" >"$tree/guests/limit_s"
    for ((vm = 1; vm <= vms; vm++)); do
        printf '%s\n' "${guest[@]}" >"$tree/guests/$vm"
    done
    { cat "$host_archive" && archive "$tree"; } >"$host_initrd" || die "cannot write $host_initrd"
}

# read_control FILE: what the host told, into $ending (by guest), and on to the user.
read_control() {
    local word guest event text
    ending=() complaint=()
    while read -r word guest event text; do
        case $word:$event in
        error:*) die "nested-kvm's host: $guest $event $text" ;;
        vm:says)
            warn "guest $guest: $text"
            complaint[guest]=${complaint[guest]:-$text}
            ;;
        vm:silent)
            say "platform hang: guest $guest printed nothing in start $text (a known fault of TCG's nested SVM)"
            platform_hangs=$((platform_hangs + 1))
            ;;
        vm:end) ending[guest]=$text ;;
        esac
    done <"$1"
}

# platform_watch DIR: ends a host that does not come up; sets $host_hung.
platform_watch() {
    local waited
    host_hung=0
    for ((waited = 0; waited < host_boot_s; waited++)); do
        [[ ! -s $1/control.log ]] && kill -0 "$qemu_pid" 2>/dev/null || return 0
        pause 1
    done
    host_hung=1
    signal_group KILL "$qemu_pid"
}

platform_boot() {
    local dir=$1 run=$2 vm vm_dir attempt code=$EXIT_PASS
    local -a ending complaint
    for ((vm = 2; vm <= vms; vm++)); do
        mkdir -p "$dir/vm-$vm"
    done
    make_initrd
    # As with a guest that prints nothing: a host that hangs before it has any guest is started again, twice at most.
    for attempt in 1 2 3; do
        run_qemu "$dir" $((host_boot_s + silent_guest_s + timeout_s)) "${command[@]}"
        ((host_hung)) || break
        say "platform hang: the host did not come up within $host_boot_s s in start $attempt (under load TCG loses one now and then)"
        platform_hangs=$((platform_hangs + 1))
    done
    if ((!host_hung)) && [[ ! -s $dir/control.log ]]; then
        warn "error: nested-kvm's host did not come up: $(cat "$dir"/{qemu,host}.log 2>/dev/null | grep -v warning: | tail -n 1)"
        collected=$EXIT_ERROR
        return
    fi
    ((!host_hung)) || timed_out=1
    read_control "$dir/control.log"
    for ((vm = 1; vm <= vms; vm++)); do
        vm_dir=$dir
        ((vms == 1)) || vm_dir=$dir/vm-$vm
        ((vm > 1 || vms == 1)) || { mkdir -p "$vm_dir" && mv "$dir/serial.log" "$vm_dir/"; }
        case ${ending[vm]:-} in
        '')
            warn "nested-kvm's host ended before guest $vm: $(tail -n 1 "$dir/host.log")"
            collect "$vm_dir" "$run" "$vm" '' "$timed_out"
            ;;
        silent | timeout) collect "$vm_dir" "$run" "$vm" '' 1 ;;
        1) if is_host_limit "${complaint[vm]:-}"; then collected=$EXIT_NOTHING_RAN; else
            collect "$vm_dir" "$run" "$vm" 1 0
        fi ;;
        *) collect "$vm_dir" "$run" "$vm" "${ending[vm]}" 0 ;;
        esac
        code=$(worst_of "$code" "$collected")
    done
    collected=$code
}
