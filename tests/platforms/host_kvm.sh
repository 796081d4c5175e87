# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# --host-kvm: kvm.ko and kvm-amd.ko of nested-kvm's host, built out of tree from Debian's linux-source with one patch, or
# with none (stock). Packages are only unpacked. The stock modules are built once for a kernel (a minute on two CPUs); a
# variant is a copy of that tree with a patch, in which little is built again.

readonly host_kvm_patches=$platforms/host-kvm

host_kvm_variants() {
    local patch
    printf stock
    for patch in "$host_kvm_patches"/*.patch; do
        printf ' %s' "$(basename "$patch" .patch)"
    done
}

# check_host_kvm: sets $kvm_patches, in the order in which they are applied; none for stock.
check_host_kvm() {
    local name
    local -a names
    kvm_patches=()
    IFS=+ read -ra names <<<"$host_kvm"
    ((${#names[@]})) || names=('')
    for name in "${names[@]}"; do
        case $name in
        stock) ;;
        */*)
            [[ -r $name ]] || die "--host-kvm $name: no such file"
            kvm_patches+=("$(realpath "$name")")
            ;;
        *)
            [[ -r $host_kvm_patches/$name.patch ]] ||
                die "--host-kvm $host_kvm: one of $(host_kvm_variants), or the path of a patch, is wanted, or several with + between"
            kvm_patches+=("$host_kvm_patches/$name.patch")
            ;;
        esac
    done
    need_command make make
    need_command patch patch
    need_command gcc-12 gcc-12
    need_command strip binutils
}

# make_kvm_tree FOLDER RELEASE: KVM's sources, and all that builds modules for the host's kernel, in one folder.
make_kvm_tree() {
    local tree=$1 release=$2 package banner source sublevel
    mkdir -p "$tree/include/trace" # empty: a tracepoint header is looked for relative to it
    for package in "linux-headers-$release" "linux-headers-${release%-cloud-amd64}-common" linux-kbuild-6.1 \
        linux-compiler-gcc-12-x86; do
        unpack_package "${package//./\\.}"
        cp -a "$unpacked/." "$tree/"
    done
    unpack_package 'linux-source-6\.1'
    source=$unpacked/usr/src/linux-source-6.1.tar.xz
    say "unpacking KVM's sources"
    tar -C "$tree" --strip-components=1 -xJf "$source" \
        linux-source-6.1/{Makefile,arch/x86/kvm,arch/x86/include,virt} || die "cannot unpack $source"
    # The kernel compares symbols, not sources: modules of other sources may load, and nobody knows what is under test.
    banner=$(kernel_banner "$vmlinuz")
    sublevel=$(sed -n 's/^SUBLEVEL = //p' "$tree/Makefile")
    [[ $banner == *" 6.1.$sublevel-"* ]] ||
        die "--host-kvm: the sources are Linux 6.1.$sublevel, the host's kernel is $banner; remove the older from $cache/packages"
    ln -s "$tree/virt" "$tree/usr/src/linux-headers-${release%-cloud-amd64}-common/virt" # KVM's Makefile is in two places
    sed -i "s|/usr/src/|$tree/usr/src/|" "$tree/usr/src/linux-headers-$release/Makefile"
}

# build_kvm TREE RELEASE
build_kvm() {
    local tree=$1
    quietly "$scratch/kvm.log" make -C "$tree/usr/src/linux-headers-$2" M="$tree/arch/x86/kvm" \
        KCFLAGS="-I$tree/arch/x86/kvm -I$tree/include/trace" "-j$(nproc)" modules || {
        tail -n 20 "$scratch/kvm.log" >&2
        die "--host-kvm $host_kvm: the build of kvm.ko failed"
    }
}

# prepare_host_kvm: sets $kvm_modules, the folder of the two modules. With the cache locked.
prepare_host_kvm() {
    local release key stock aside patch
    ((dry_run)) && return # the kernel may not be there to ask
    release=$(basename "$modules")
    [[ $release =~ ^6\.1\.0-[0-9]+-cloud-amd64$ ]] || die "--host-kvm: made for --host-kernel 6.1, and this is $release"
    key=$(cat "${kvm_patches[@]}" /dev/null | sha256sum | cut -c 1-16)
    kvm_modules=$cache/host-kvm/$release/$key
    [[ ! -e $kvm_modules/kvm-amd.ko ]] || return 0

    # A variant is built in the place of the stock one, since make knows files by their whole paths, and little is built
    # again. The mark stands while the tree is not what it should be: a run that ends in between leaves it.
    stock=$cache/host-kvm/$release/tree
    [[ ! -e $stock/unfinished ]] || rm -rf "$stock"
    if [[ ! -e $stock ]]; then
        mkdir -p "$stock" && touch "$stock/unfinished"
        make_kvm_tree "$stock" "$release"
        say "building the stock kvm.ko and kvm-amd.ko of $release (a minute, once)"
        build_kvm "$stock" "$release"
        rm "$stock/unfinished"
    fi
    if ((${#kvm_patches[@]})); then
        say "building kvm.ko and kvm-amd.ko with $host_kvm (once for these patches)"
        aside=$cache/host-kvm/$release/aside
        rm -rf "$aside" && mkdir "$aside" && cp -a "$stock/arch" "$stock/virt" "$aside/"
        for patch in "${kvm_patches[@]}"; do
            apply_kvm_patch "$aside" "$patch"
        done
        touch "$stock/unfinished"
        swap_kvm_sources "$stock" "$aside"
        build_kvm "$stock" "$release"
    fi
    mkdir -p "$kvm_modules.part"
    if ! { cp "$stock/arch/x86/kvm/"{kvm,kvm-amd}.ko "$kvm_modules.part/" && strip --strip-debug "$kvm_modules.part/"*.ko &&
        mv -T "$kvm_modules.part" "$kvm_modules"; }; then
        die "cannot write $kvm_modules"
    fi
    if ((${#kvm_patches[@]})); then
        swap_kvm_sources "$stock" "$aside"
        rm -rf "$aside" "$stock/unfinished"
    fi
}

# swap_kvm_sources TREE OTHER: what a patch may change, for what lies in the other folder.
swap_kvm_sources() {
    local part
    for part in arch virt; do
        if ! { mv -T "$1/$part" "$2/$part.old" && mv -T "$2/$part" "$1/$part" && mv -T "$2/$part.old" "$2/$part"; }; then
            die "cannot write $1"
        fi
    done
}

# apply_kvm_patch TREE PATCH
apply_kvm_patch() {
    quietly "$scratch/patch.log" patch -p1 --forward --batch --fuzz=0 --reject-file=- -d "$1" -i "$2" ||
        die "--host-kvm $host_kvm: $2 does not apply to the host's kernel: $(grep -m 1 -i 'fail\|malformed\|garbage\|find' "$scratch/patch.log")"
}
