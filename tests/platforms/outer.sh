# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# Platforms with an outer machine: a Linux in QEMU whose first process (outer-init.sh and the platform's own) starts the
# guests and tells how each of them ended, on a virtio port of its own; each guest's serial line has another one.
#
# A platform that sources this has: host_boot_s and silent_guest_s, prepare_host_tree, write_guest, and platform_command.

# Guests of this run, counted from 1, with the platform that each counts as: kinds[vm].
kinds=()

# kernel_banner BZIMAGE: what its header points to (offset 0x20e, relative to 0x200), the release first.
kernel_banner() {
    local at
    at=$(od -An -tu2 -j 0x20e -N 2 "$1")
    tail -c "+$((at + 0x201))" "$1" | head -c 256 | tr '\0' '\n' | sed -n 1p
}

# add_module FOLDER NAME: copies it there, from $modules or, if --host-kvm has built it, from $kvm_modules, behind all that it
# depends on, numbered in that order.
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

# add_libraries TREE PROGRAM [FOLDER]: what the dynamic linker loads for it, from FOLDER (a list with colons) if it is there.
add_libraries() {
    local library needed
    needed=$(LD_LIBRARY_PATH=${3:-} ldd "$2") || die "$2: not a program for this machine"
    if [[ $needed == *'not found'* ]]; then
        die "$2 needs$(sed -n 's/=> not found//p' <<<"$needed" | tr -s '\t\n ' ' '), which no package here brings"
    fi
    while read -r library; do
        case $library in
        "$cache"/*) install -D "$library" "$1/usr/lib/x86_64-linux-gnu/${library##*/}" ;;
        *) install -D "$library" "$1$library" ;;
        esac
    done < <(grep -o '/[^ ]*' <<<"$needed")
}

# start_host_tree FOLDER INIT: what every host has; INIT is the platform's first process.
start_host_tree() {
    mkdir -p "$1"/{bin,proc,sys,dev,run,tmp,modules}
    cp "$busybox" "$1/bin/busybox"
    ln -s busybox "$1/bin/sh"
    install -m 755 "$2" "$1/init"
    install -m 644 "$platforms/outer-init.sh" "$1/outer-init.sh"
}

# archive FOLDER: as the kernel unpacks it.
archive() { (cd "$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null); }

# prepare_host NAME FILE...: sets $host_archive, the large and lasting part of the initrd. It is made once for these files,
# which are all that it is made of; the kernel unpacks archives one after another, so that a new image only means a new small
# one behind it. It is not compressed: under TCG the host would need 1.3 s to unpack it.
prepare_host() {
    local name=$1 key
    shift
    key=$(stat -Lc '%n %s %Y' "$@" "$busybox" |
        cat - "$platforms/outer.sh" "$platforms/outer-init.sh" "$platforms/$name.sh" "$platforms/$name-init.sh" |
        sha256sum | cut -c 1-16)
    host_archive=$cache/$name-$key.cpio
    if [[ -e $host_archive ]]; then
        touch "$host_archive"
        return
    fi
    say "making the initrd of $name's host (once for its kernel and its programs)"
    prepare_host_tree "$scratch/host"
    archive "$scratch/host" >"$host_archive.part" || die "cannot write $host_archive.part"
    # Where the next archive starts is up to its magic, which the kernel looks for at multiples of four.
    truncate -s %4 "$host_archive.part"
    mv "$host_archive.part" "$host_archive"
    rm -rf "$scratch/host"
    find "$cache" -maxdepth 1 -name "$name-*.cpio" -printf '%T@ %p\n' | sort -rn | tail -n +5 | cut -d ' ' -f 2- |
        xargs -r -d '\n' rm -f
}

# host_ports DIR: sets $ports, QEMU's arguments for the control port and the guests' serial lines. The first guest's line is this
# QEMU's standard output, which is watched; the others go straight to their files. Not as `stdio`: at the end of standard
# input QEMU would close the port.
host_ports() {
    local dir=$1 vm first="file,id=vm1,path=/dev/stdout"
    ((!interactive)) || first=$(serial_socket vm1)
    ports=(-device "virtio-serial-pci,max_ports=$((vms + 2))"
        -chardev "file,id=control,path=$(option_value "$dir/control.log")"
        -device "virtserialport,chardev=control,name=control"
        -chardev "$first" -device "virtserialport,chardev=vm1,name=vm1")
    for ((vm = 2; vm <= vms; vm++)); do
        ports+=(-chardev "file,id=vm$vm,path=$(option_value "$dir/vm-$vm/serial.log")"
            -device "virtserialport,chardev=vm$vm,name=vm$vm")
    done
}

# The initrd of this boot: the host's archive, and one with the image and what the guests are.
make_initrd() {
    local tree=$scratch/guests vm
    rm -rf "$tree"
    mkdir -p "$tree/guests"
    cp "$image" "$tree/image"
    [[ -z ${iso_file:-} ]] || cp "$iso_file" "$tree/image.iso"
    echo "$timeout_s" >"$tree/guests/limit_s"
    ((!host_counters)) || : >"$tree/guests/counters"
    ((hogs == 0)) || echo "$hogs" >"$tree/guests/hogs"
    ((!interactive)) || : >"$tree/guests/interactive"
    for ((vm = 1; vm <= vms; vm++)); do
        write_guest "$vm" >"$tree/guests/$vm"
    done
    { cat "$host_archive" && archive "$tree"; } >"$host_initrd" || die "cannot write $host_initrd"
}

# read_control FILE: what the host told, into $ending (by guest), and on to the user.
read_control() {
    local word guest event text
    ending=() complaint=() counters=() syncs=()
    while read -r word guest event text; do
        case $word:$event in
        error:*) die "$platform's host: $guest $event $text" ;;
        vm:says)
            warn "guest $guest: $text"
            complaint[guest]=${complaint[guest]:-$text}
            ;;
        vm:silent)
            say "platform hang: guest $guest printed nothing in start $text (a known fault of TCG's nested SVM)"
            platform_hangs=$((platform_hangs + 1))
            ;;
        fact:*) fact "$guest" "$event${text:+ $text}" ;;
        vm:counters) counters[guest]=$text ;;
        vm:sync) syncs[guest]+=$text$'\n' ;;
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

# last_words DIR: of a host that ended too early: why its kernel died, else its or QEMU's last line.
last_words() {
    local words
    words=$(cat "$1"/{qemu,host}.log 2>/dev/null | grep -v warning:)
    grep -m 1 'Kernel panic' <<<"$words" || tail -n 1 <<<"$words"
}

platform_boot() {
    local dir=$1 run=$2 vm vm_dir attempt code=$EXIT_PASS
    local outer=$platform platform=$platform # collect() takes the one of each guest
    local -a ending complaint counters syncs
    for ((vm = 2; vm <= vms; vm++)); do
        mkdir -p "$dir/vm-$vm"
    done
    make_initrd
    # As with a guest that prints nothing: a host that hangs or dies before it has any guest is started again, twice at most.
    for attempt in 1 2 3; do
        run_qemu "$dir" $((host_boot_s + silent_guest_s + timeout_s)) "${command[@]}"
        ((host_hung)) || [[ ! -s $dir/control.log ]] || break
        ((qemu_status != 1)) || break # QEMU has refused, and will again
        say "platform hang: the host did not come up in start $attempt (TCG loses one now and then): $(last_words "$dir")"
        platform_hangs=$((platform_hangs + 1))
    done
    if ((!host_hung)) && [[ ! -s $dir/control.log ]]; then
        warn "error: $outer's host did not come up: $(last_words "$dir")"
        collected=$EXIT_ERROR
        return
    fi
    ((!host_hung)) || timed_out=1
    read_control "$dir/control.log"
    [[ $outer != xen-* ]] || facts_of_xen "$dir/host.log"
    for ((vm = 1; vm <= vms; vm++)); do
        vm_dir=$dir platform=${kinds[vm]:-$outer} host_counts=${counters[vm]:-}
        ((vms == 1)) || vm_dir=$dir/vm-$vm
        ((vm > 1 || vms == 1)) || { mkdir -p "$vm_dir" && mv "$dir/serial.log" "$vm_dir/"; }
        ((!host_counters)) || printf '%s' "${syncs[vm]:-}" >"$vm_dir/host-counters.log" || die "cannot write $vm_dir/host-counters.log"
        case ${ending[vm]:-} in
        '')
            warn "$outer's host ended before guest $vm: $(last_words "$dir")"
            collect "$vm_dir" "$run" "$vm" '' "$timed_out"
            ;;
        silent | timeout) collect "$vm_dir" "$run" "$vm" '' 1 ;;
        refused) collect "$vm_dir" "$run" "$vm" '' 0 ;; # its toolstack has said why
        1) if is_host_limit "${complaint[vm]:-}"; then collected=$EXIT_NOTHING_RAN; else
            collect "$vm_dir" "$run" "$vm" 1 0
        fi ;;
        *) collect "$vm_dir" "$run" "$vm" "${ending[vm]}" 0 ;;
        esac
        code=$(worst_of "$code" "$collected")
    done
    collected=$code
}
