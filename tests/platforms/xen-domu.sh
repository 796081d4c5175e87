# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# xen-domu-pvh, xen-domu-pv, xen-domu-hvm: ordinary guests of Debian's Xen, started by the real xl in a Linux dom0, on a
# machine whose SVM is emulated by TCG. That dom0's first process is xen-domu-init.sh.

# shellcheck source=tests/platforms/outer.sh
source "$platforms/outer.sh"
# shellcheck source=tests/platforms/xen.sh
source "$platforms/xen.sh"

# From power-on to dom0's first word: 9 s on an idle machine.
readonly host_boot_s=120
# For a guest that says nothing, and for its end; xl starts one after the other.
silent_guest_s=100

readonly dom0_mib=640

platform_defaults() {
    local vm kind
    for ((vm = 1; vm <= vms; vm++)); do
        kinds[vm]=$platform
    done
    for kind in "${also[@]}"; do
        vms=$((vms + 1))
        kinds[vms]=$kind
    done
    ! has_kind xen-domu-hvm || silent_guest_s=220
    default_smp=4 default_mem=64 default_machine=q35 default_timeout=120
    # For -monitor see xen.sh; with SMAP or SMEP Debian's kernel dies as a PV dom0 under TCG, in its own test of INT3.
    default_cpu=EPYC,+svm,+npt,-monitor,-smap,-smep
    # Several domains share the CPUs, in slices of 30 ms: in 20 ms a worker may not run at all.
    platform_words=(compact=1 duration_ms=100)
    timing=emulated
}

platform_check() {
    ((pcpus <= 254)) || die "--pcpus $pcpus: $platform takes at most 254, beside a CPU without guests"
    local name
    need_qemu
    need_command xz xz-utils
    need_command dpkg-deb dpkg
    if has_kind xen-domu-hvm; then
        for name in "${device_model_files[@]}"; do
            need_file "$name" "$([[ $name == *seabios* ]] && echo seabios || echo qemu-system-data)"
        done
    fi
    have_all || die "${missing_things[*]} not found: $(install_line)"
}

# Each with the modules that it depends on.
readonly -a host_modules=(xen-privcmd xenfs xen-evtchn xen-gntdev xen-gntalloc virtio_pci virtio_console)

# What of Xen's tools a domain without a device model needs, and the libraries that Debian may not have installed here.
readonly -a xen_programs=(xl libxl-save-helper xenstored xenconsoled xen-init-dom0)
readonly -a xen_libraries=(libxenmisc4.17 libxencall1 libxendevicemodel1 libxenevtchn1 libxenforeignmemory1
    libxengnttab1 libxenhypfs1 libxenstore4 libxentoolcore1 libxentoollog1 libyajl2 libfdt1 libnl-3-200
    libnl-route-3-200)

# What HVM domains need in addition, from this machine's QEMU and SeaBIOS.
readonly -a device_model_files=(/usr/share/seabios/bios-256k.bin /usr/share/qemu/kvmvapic.bin
    /usr/share/qemu/keymaps/en-us)

has_kind() { [[ " ${kinds[*]} " == *" $1 "* ]]; }

# prepare_host_tree FOLDER: all that dom0 has, but for the image and the guests' configurations.
prepare_host_tree() {
    local tree=$1 name library place=$xen_utils/usr/lib/xen-4.17
    start_host_tree "$tree" "$platforms/xen-domu-init.sh"
    mkdir -p "$tree"/{etc/xen,var/lib/xen,var/log/xen/console,var/lock}
    ln -s /run "$tree/var/run"
    : >"$tree/etc/xen/xl.conf"
    for name in "${host_modules[@]}"; do
        add_module "$tree/modules" "$name"
    done
    if [[ -n $device_model ]]; then
        add_libraries "$tree" "$device_model" "$xen_library_path"
        install -D "$device_model" "$tree/usr/libexec/xen-qemu-system-i386"
        install -D "$place/boot/hvmloader" "$tree/usr/lib/xen-4.17/boot/hvmloader"
        for name in "${device_model_files[@]}"; do
            install -D "$name" "$tree$name"
        done
        install -D /usr/share/seabios/bios-256k.bin "$tree/usr/share/qemu/bios-256k.bin"
    fi
    for name in "${xen_programs[@]}"; do
        add_libraries "$tree" "$place/bin/$name" "$xen_library_path"
        install -D "$place/bin/$name" "$tree/usr/lib/xen-4.17/bin/$name" # where they look for each other
    done
    # No program names this one: the C library loads it when a thread ends.
    library=$(ldconfig -p | sed -n 's|.*libgcc_s\.so\.1 .*x86-64.* => ||p' | head -n 1)
    [[ -n $library ]] || die "libgcc_s.so.1 not found: apt-get install libgcc-s1"
    install -D "$library" "$tree/usr/lib/x86_64-linux-gnu/libgcc_s.so.1"
}

platform_prepare() {
    local name
    ((vms * (mem + 32) <= 8192)) || die "--vms $vms with --mem $mem: the guests have more than 8 GiB together"
    [[ "${kernel_words[*]}" != *[\"\\]* ]] || die "--append: a quote or a backslash cannot pass through xl's configuration"
    unpack_xen
    lock_cache
    unpack_package 'linux-image-6\.1\.0-[0-9]+-amd64' # the cloud flavour cannot be a dom0
    vmlinuz=$(echo "$unpacked"/boot/vmlinuz-*)
    modules=$(echo "$unpacked"/lib/modules/*)
    unpack_package busybox-static
    busybox=$unpacked/bin/busybox
    unpack_package 'xen-utils-4\.17'
    xen_utils=$unpacked
    xen_library_path=
    for name in "${xen_libraries[@]}"; do
        unpack_package "${name//./\\.}"
        xen_library_path+=:$unpacked/usr/lib/x86_64-linux-gnu:$unpacked/lib/x86_64-linux-gnu
    done
    device_model=
    if has_kind xen-domu-hvm; then
        unpack_package qemu-system-xen
        device_model=$unpacked/usr/libexec/xen-qemu-system-i386
    fi
    host_initrd=$scratch/initrd
    ((dry_run)) || prepare_host xen-domu "$vmlinuz" "$modules" "$xen_utils/usr/lib/xen-4.17/bin/xl" ${device_model:+"$device_model"}
    unlock_cache
    ! has_kind xen-domu-hvm || prepare_iso
}

# write_guest VM: its configuration, as xl reads it. All that ends it ends in its destruction; xl says before for what
# reason. A test polls an event channel above 1023, where xl's own limit is.
write_guest() {
    local kind=${kinds[$1]}
    cat <<CFG
name = "vm$1"
memory = $mem
vcpus = $smp
max_event_channels = 4095
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "destroy"
CFG
    case $kind in
    xen-domu-pvh) printf 'type = "pvh"\nkernel = "/image"\ncmdline = "%s"\n' "${kernel_words[*]}" ;;
    xen-domu-hvm)
        cat <<CFG
type = "hvm"
boot = "d"
disk = ["format=raw,vdev=hdc,access=ro,devtype=cdrom,backendtype=qdisk,target=/image.iso"]
serial = "file:/run/serial-$1"
vga = "none"
vnc = 0
sdl = 0
nographic = 1
usb = 0
CFG
        ;;
    xen-domu-pv) printf 'type = "pv"\nkernel = "/image"\nextra = "%s"\n' "${kernel_words[*]}" ;;
    esac
    # Not on the first CPU, as in nested-kvm.sh: dom0 restores its FPU on the others.
    [[ "${xl_lines[*]-}" =~ (^|\ )cpus ]] || printf 'cpus = "1-%s"\n' "$pcpus"
    ((${#xl_lines[@]} == 0)) || printf '%s\n' "${xl_lines[@]}"
}

# dom0 has one vCPU: more of them would compete with the guests for the CPUs below. Xen has a CPU more than the guests.
platform_command() {
    host_ports "$1"
    [[ $host_initrd != *\ * ]] || die "$host_initrd: QEMU ends a module's name at a blank; set TMPDIR to another folder"
    command=(qemu-system-x86_64 -accel tcg -machine "$machine" -cpu "$cpu" -smp $((pcpus + 1))
        -m $((dom0_mib + 320 + vms * (mem + 32))) "${bare_machine[@]}" -monitor none
        -serial "file:$(option_value "$1/host.log")" "${ports[@]}" -kernel "$xen"
        -append "$xen_console_words sched=credit dom0_mem=${dom0_mib}M dom0_max_vcpus=1 cpuidle=0 iommu=none${xen_args:+ $xen_args}"
        -initrd "$(option_value "$vmlinuz console=hvc0 quiet panic=-1"),$(option_value "$host_initrd")" "${extra[@]}")
}

platform_commands() {
    local vm
    quoted "${command[@]}"
    for ((vm = 1; vm <= vms; vm++)); do
        printf 'and in there, xl create %s:\n' "$vm"
        write_guest "$vm" | sed 's/^/    /'
    done
}
