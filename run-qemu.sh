#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# One run on one platform: build, boot, watch, collect, verdict. What a platform is stands in tests/platforms/.
set -u -o pipefail

# `spinkick` on the PATH is a link to this file.
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
platforms=$root/tests/platforms
# Installed, the image and the report tool lie beside this script, and nothing is built.
if [[ -e $root/spinkick.elf ]]; then
    installed=1
    cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/spinkick
    runs=$PWD/spinkick-runs
else
    installed=0
    cache=$root/build/cache
    runs=$root/build/runs
fi
readonly root platforms installed cache runs
# shellcheck source=tests/platforms/lib.sh
source "$platforms/lib.sh"
# shellcheck source=tests/platforms/packages.sh
source "$platforms/packages.sh"
# shellcheck source=tests/platforms/qemu.sh
source "$platforms/qemu.sh"
# shellcheck source=tests/platforms/boot.sh
source "$platforms/boot.sh"
# shellcheck source=tests/platforms/iso.sh
source "$platforms/iso.sh"
# shellcheck source=tests/platforms/host_kvm.sh
source "$platforms/host_kvm.sh"
# shellcheck source=tests/platforms/host_facts.sh
source "$platforms/host_facts.sh"
# shellcheck source=tests/platforms/auto.sh
source "$platforms/auto.sh"

usage() {
    cat <<'TEXT'
usage: run-qemu.sh [OPTION]... [-- EXTRA QEMU ARGUMENTS]     (installed: spinkick [OPTION]...)
Boots the image on one platform and says whether the hypervisor's lock paths are correct, and how fast and fair.

  --on PLATFORM        auto (default): the host's KVM if usable and fast, else nested-kvm
                       tcg          plain emulation
                       kvm          /dev/kvm
                       nested-kvm   Linux's KVM inside emulated SVM: needs no hardware virtualisation
                       xen-pvh      Xen inside emulated SVM, the image as its PVH dom0
                       xen-pv       the same as its PV dom0
                       xen-domu-pvh, xen-domu-pv, xen-domu-hvm
                                    the same Xen, the image as an ordinary guest that xl starts in a Linux dom0
                                    (hvm: from a GRUB CD)
  --smp N[,TOPOLOGY]   vCPUs (default 4), as QEMU's -smp
  --pcpus N            CPUs under them: those of the emulated host (default 2), or of this one (default all)
  --cpu MODEL          QEMU's CPU model       --mem MIB         memory (default 256)
  --machine M          q35, pc or microvm     --vms N           guests at once (nested-kvm, xen-domu-*)
  --also PLATFORM      one guest more beside them, of another kind (xen-domu-*); may be repeated
  --append "ARGS"      more of the kernel's command line, such as "tests=lock.* duration_ms=50"
  --timeout S          no verdict after so long is a hang (default 120)
  --repeat N           boots in a row         --out DIR         results (default build/runs/DATE; installed: spinkick-runs/DATE)
  --preset NAME        which build (default release)
  --host-kernel K      nested-kvm's Linux: 6.1 (default), 6.12, a Debian package, or a path to a kernel, which takes
                       its modules from lib/modules beside or above it
  --host-kvm VARIANT   nested-kvm's KVM built from source: stock, the name of a patch in tests/platforms/host-kvm, or the
                       path of a patch
  --hog N              N busy neighbours: processes of the host that never sleep, on the guests' CPUs (nested-kvm)
  --host-counters      KVM's statistics beside the guest's own counts (nested-kvm; goes with --host-kvm by itself)
  --xen-args "WORDS"   more of Xen's command line, such as "sched=credit2" (xen-*)
  --xl LINE            a line of the guests' xl.cfg, such as "cap = 50", "cpu_weight = 512" or 'cpus = "0"' (xen-domu-*);
                       may be repeated
  --iso                boot by GRUB from a CD instead of QEMU's own loader (tcg, kvm)
  --uefi               the same on UEFI (OVMF) instead of a BIOS
  --steal-limit P      boot again, at most three times in all, while the vCPUs of a benchmark wanted to run and did not
                       for more than P percent of their time; DIR/noisy-N keeps what came before
  --interactive        a prompt instead of a suite: `help` there lists the commands; a script on standard input is obeyed
                       line by line (`run TEST &` does not wait for its end). Not on xen-domu-*. Default --timeout: 3600
  --require pv         an error if no paravirtual back end works
  --bisect             exit code 125 instead of 2 and 77, for git bisect run
  --list               each test with its claim
  --dry-run            only print the command lines
  --install            bring missing Debian packages (apt-get, with sudo if not root)
  -v                   show the serial stream instead of progress
Exit codes: 0 pass, 1 a test failed, 2 error, 3 crash, 77 nothing ran, 124 hang. SPINKICK_IMAGE=FILE boots that file.
TEXT
}

# --- options ---------------------------------------------------------------------------------------------------------

platform=auto smp='' pcpus='' cpu='' mem='' machine='' timeout_s='' out='' append='' host_kernel='' host_kvm='' host_counters=0 require='' xen_args='' steal_limit=''
preset=release vms=1 repeat=1 hogs=0
iso=0 uefi=0 bisect=0 list=0 dry_run=0 install=0 verbose=0 interactive=0
extra=() also=() xl_lines=()

# number OPTION VALUE LOWEST HIGHEST
number() {
    if [[ ! $2 =~ ^[0-9]{1,9}$ ]] || ((10#$2 < $3 || 10#$2 > $4)); then
        die "$1 $2: a number from $3 to $4 is wanted"
    fi
}

parse_options() {
    local option
    while (($#)); do
        option=$1
        shift
        case $option in
        --on | --smp | --pcpus | --cpu | --mem | --machine | --vms | --append | --timeout | --repeat | --out | --preset | \
            --hog | --host-kernel | --host-kvm | --require | --steal-limit | --xen-args | --also | --xl)
            (($#)) || die "$option: its value is missing"
            ;;&
        --on) platform=$1 && shift ;;
        --smp) smp=$1 && shift ;;
        --pcpus) pcpus=$1 && shift ;;
        --cpu) cpu=$1 && shift ;;
        --mem) mem=$1 && shift ;;
        --machine) machine=$1 && shift ;;
        --vms) vms=$1 && shift ;;
        --hog) hogs=$1 && shift ;;
        --append) append+=" $1" && shift ;;
        --timeout) timeout_s=$1 && shift ;;
        --repeat) repeat=$1 && shift ;;
        --out) out=$1 && shift ;;
        --preset) preset=$1 && shift ;;
        --host-kernel) host_kernel=$1 && shift ;;
        --host-kvm) host_kvm=$1 host_counters=1 && shift ;;
        --host-counters) host_counters=1 ;;
        --xen-args) xen_args=$1 && shift ;;
        --steal-limit) steal_limit=$1 && shift ;;
        --require) require=$1 && shift ;;
        --also) also+=("$1") && shift ;;
        --xl) xl_lines+=("$1") && shift ;;
        --iso) iso=1 ;;
        --uefi) iso=1 uefi=1 ;;
        --bisect) ;; # main has seen it
        --list) list=1 ;;
        --interactive) interactive=1 ;;
        --dry-run) dry_run=1 ;;
        --install) install=1 ;;
        -v) verbose=1 ;;
        -h | --help)
            usage
            exit 0
            ;;
        --)
            extra=("$@")
            return
            ;;
        *) die "unknown option $option (--help lists them)" ;;
        esac
    done
}

check_options() {
    [[ $platform =~ ^(auto|tcg|kvm|nested-kvm|xen-pvh|xen-pv|xen-domu-pvh|xen-domu-pv|xen-domu-hvm)$ ]] ||
        die "--on $platform: no such platform (--help lists them)"
    [[ -z $smp ]] || number --smp "${smp%%,*}" 1 4096
    [[ -z $pcpus ]] || number --pcpus "$pcpus" 1 255
    # The image lies at 2 MiB and may be 4 MiB long; stacks and rings come on top.
    [[ -z $mem ]] || number --mem "$mem" 16 1048576
    [[ -z $machine || $machine =~ ^(q35|pc|microvm)(,.*)?$ ]] || die "--machine $machine: q35, pc or microvm is wanted"
    number --vms "$vms" 1 16
    number --hog "$hogs" 0 64
    number --repeat "$repeat" 1 100000
    [[ -z $timeout_s ]] || number --timeout "$timeout_s" 1 86400
    [[ -z $steal_limit ]] || number --steal-limit "$steal_limit" 0 100
    [[ -z $require || $require == pv ]] || die "--require $require: only pv can be required"
    [[ $append != *$'\n'* ]] || die "--append: a kernel command line has no line breaks"
    if ((installed)); then
        [[ $preset == release ]] || die "--preset $preset: there is one installed image; a source tree builds others"
        return
    fi
    grep -qs "\"name\": \"$preset\"" "$root/CMakePresets.json" ||
        die "--preset $preset: CMakePresets.json has no such preset"
}

# An option that the platform would silently ignore is a mistake of the caller.
check_platform_options() {
    local kind
    [[ $platform == nested-kvm || $platform == xen-domu-* ]] || ((vms == 1)) ||
        die "--vms $vms: only nested-kvm and xen-domu-* start several guests"
    for kind in "${also[@]}"; do
        [[ $platform == xen-domu-* ]] || die "--also $kind: only beside a xen-domu-* guest"
        [[ $kind =~ ^xen-domu-(pvh|pv|hvm)$ ]] || die "--also $kind: xen-domu-pvh, -pv or -hvm is wanted"
    done
    ((${#xl_lines[@]} == 0)) || [[ $platform == xen-domu-* ]] || die "--xl ${xl_lines[0]}: only xen-domu-* guests have an xl.cfg"
    for kind in "${xl_lines[@]}"; do
        [[ $kind =~ ^[a-z_0-9]+\ *=.+$ && $kind != *$'\n'* ]] || die "--xl $kind: one NAME = VALUE is wanted, as xl.cfg(5) has it"
    done
    [[ $platform == xen-* || -z $xen_args ]] || die "--xen-args $xen_args: only xen-* have a Xen"
    [[ $platform == nested-kvm || -z $host_kernel ]] || die "--host-kernel $host_kernel: only nested-kvm has a host kernel"
    [[ $platform == nested-kvm ]] || ((hogs == 0)) || die "--hog $hogs: only nested-kvm has a host to keep busy; on Xen another guest (--vms) is a neighbour"
    [[ $platform == nested-kvm ]] || ((!host_counters)) || [[ -n $host_kvm ]] || die "--host-counters: only nested-kvm has a KVM to ask"
    [[ $platform == nested-kvm || -z $host_kvm ]] || die "--host-kvm $host_kvm: only nested-kvm has a KVM to change"
    [[ $platform =~ ^(tcg|kvm)$ ]] || ((!iso)) || die "--iso: $platform cannot boot a CD, tcg and kvm can"
    [[ $machine != microvm* ]] || ((!iso)) || die "--iso: microvm has no CD drive"
    if ((interactive)); then
        [[ $platform != xen-domu-* ]] || die "--interactive: not on $platform, whose console is xl's; xen-pvh and xen-pv are the same kernel"
        ((vms == 1 && repeat == 1 && !list && !verbose)) || die "--interactive: not with --vms, --repeat, --list or -v: there is one keyboard"
    fi
    if [[ $platform == xen-* ]]; then
        [[ $smp != *,* ]] || die "--smp $smp: Xen gives its guests a number of vCPUs, no topology"
        [[ -z $machine || $machine == q35 ]] || die "--machine $machine: $platform runs on q35"
    fi
}

# How long the word soak= asks for; 0 without it. A bad one is the image's to refuse.
soak_seconds() {
    local word seconds=0
    for word in $append; do
        [[ $word =~ ^soak=([0-9]{1,6})([smh]?)$ ]] || continue
        seconds=${BASH_REMATCH[1]}
        case ${BASH_REMATCH[2]} in
        m) seconds=$((seconds * 60)) ;;
        h) seconds=$((seconds * 3600)) ;;
        esac
    done
    echo "$seconds"
}

load_platform() {
    local file=$platform
    case $platform in
    xen-domu-*) file=xen-domu ;;
    xen-*) file=xen ;;
    esac
    # shellcheck disable=SC1090 # the files are checked together with this one
    source "$platforms/$file.sh"
    platform_defaults
    smp=${smp:-$default_smp} mem=${mem:-$default_mem} cpu=${cpu:-$default_cpu} machine=${machine:-$default_machine}
    if ((interactive)); then
        timeout_s=${timeout_s:-3600}
        platform_words+=(monitor)
        exec {keyboard}<&0
        history_file=${XDG_STATE_HOME:-${HOME:-/tmp}/.local/state}/spinkick/history
        mkdir -p "${history_file%/*}" || history_file=''
        use_serial_socket
    fi
    timeout_s=${timeout_s:-$((default_timeout + $(soak_seconds)))}
    pinning=()
    if [[ $platform =~ ^(tcg|kvm)$ ]]; then
        [[ -z $pcpus ]] || on_pcpus "$pcpus"
    else
        pcpus=${pcpus:-2}
    fi
}

# --- build -----------------------------------------------------------------------------------------------------------

# build TARGET...: at most one at a time in a folder, as ninja does not lock it.
build() {
    local folder=$root/build/$preset log=$scratch/build.log
    mkdir -p "$folder"
    if [[ ! -e $folder/build.ninja ]]; then
        say "configuring and building preset $preset"
        quietly "$log" flock "$folder/lock" env -C "$root" cmake --preset "$preset" || build_failed "$log"
    fi
    quietly "$log" flock "$folder/lock" cmake --build "$folder" --target "$@" || build_failed "$log"
}

build_failed() {
    tail -n 30 "$1" >&2
    die "the build of preset $preset failed"
}

prepare_build() {
    if ((installed)); then
        report=$root/spinkick-report
        image=${SPINKICK_IMAGE:-$root/spinkick.elf}
        [[ -r $image ]] || die "SPINKICK_IMAGE=$image: no such file"
        image_sha256=$(sha256sum "$image" | cut -d ' ' -f 1)
        return
    fi
    report=$root/build/$preset/tools/spinkick-report
    image=${SPINKICK_IMAGE:-$root/build/$preset/spinkick.elf}
    ((dry_run)) && return
    need_build_tools "$preset"
    have_all || die "${missing_things[*]} not found: $(install_line)"
    if [[ -n ${SPINKICK_IMAGE:-} ]]; then
        [[ -r $image ]] || die "SPINKICK_IMAGE=$image: no such file"
        build spinkick-report
    else
        build spinkick spinkick-report
    fi
    image_sha256=$(sha256sum "$image" | cut -d ' ' -f 1)
}

# --- all of it -------------------------------------------------------------------------------------------------------

on_exit() {
    local code=$?
    trap '' HUP INT TERM
    terminate_jobs
    [[ -z ${scratch:-} ]] || rm -rf "$scratch"
    if ((bisect)) && [[ $code == "$EXIT_ERROR" || $code == "$EXIT_NOTHING_RAN" ]]; then code=125; fi
    exit "$code"
}

# A paravirtual back end works if the image's context record calls it ok.
pv_works() {
    local dir
    for dir in "${result_dirs[@]}"; do
        grep -q '# json {"type":"context".*"\(kvm\|xen\|xen_pv\)":"ok"' "$dir/serial.log" || return 1
    done
}

# boot_until_quiet DIR RUN: boot(), with --steal-limit again while it passed and was noisy. What did not pass is not repeated: that
# would hide it.
boot_until_quiet() {
    local attempt status said file first=${#result_dirs[@]}
    for ((attempt = 1; ; attempt++)); do
        boot "$1" "$2"
        if [[ -z $steal_limit ]] || ((collected != EXIT_PASS)); then return; fi
        status=0
        said=$("$report" steal --limit "$steal_limit" "${result_dirs[@]:first}") || status=$?
        ((status == EXIT_FAIL)) || return 0
        if ((attempt == 3)); then
            noisy_boots=$((noisy_boots + 1))
            return
        fi
        say "noisy: $said; booting again ($((attempt + 1)) of 3)"
        rm -rf "$1/noisy-$attempt"
        mkdir "$1/noisy-$attempt"
        for file in "$1"/{serial.log,qemu.log,host.log,control.log,command.txt,results.tap,results.json,junit.xml,trace.json} "$1"/vm-[0-9]*; do
            [[ ! -e $file ]] || mv "$file" "$1/noisy-$attempt/"
        done
        result_dirs=("${result_dirs[@]:0:first}")
    done
}

run_all() {
    local run dir code=$EXIT_PASS
    result_dirs=() platform_hangs=0 noisy_boots=0
    out=${out:-$runs/$(date +%Y-%m-%d_%H-%M-%S)}
    for ((run = 1; run <= repeat; run++)); do
        dir=$out
        ((repeat == 1)) || dir=$out/run-$run
        boot_until_quiet "$dir" "$run"
        ((repeat == 1)) || say "boot $run of $repeat: exit code $collected"
        code=$(worst_of "$code" "$collected")
    done
    if ((${#result_dirs[@]})); then
        ((${#result_dirs[@]} == 1)) || "$report" merge "${result_dirs[@]}" --out "$out" >/dev/null
        "$report" summary "$out"
        if [[ -n $require ]] && ((code == EXIT_PASS || code == EXIT_NOTHING_RAN)) && ! pv_works; then
            warn "error: --require pv: no paravirtual back end worked on $platform (serial.log, context record)"
            code=$EXIT_ERROR
        fi
    fi
    ((platform_hangs == 0)) || say "platform hangs: $platform_hangs (machines that TCG lost before their first byte, and that were started again)"
    ((noisy_boots == 0)) || say "noisy: $noisy_boots of $repeat, three boots each; their figures are those of a busy host"
    say "exit code $code; results in ${out#"$PWD"/}"
    exit "$code"
}

# The image lists its tests as `# test NAME: claim`.
list_tests() {
    repeat=1 timing=emulated
    platform_command "$scratch"
    verbose=1 run_qemu "$scratch" "$timeout_s" "${command[@]}" >/dev/null
    sed -n 's|\r$||; s|^# test ||p' "$scratch/serial.log"
    ((qemu_status == 33)) || die "the image did not list its tests (QEMU ended with $qemu_status)"
}

main() {
    trap on_exit EXIT
    local word
    for word in "$@"; do # before anything can fail
        [[ $word != -- ]] || break
        [[ $word != --bisect ]] || bisect=1
    done
    parse_options "$@"
    check_options
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    scratch=$(mktemp -d) || die "mktemp: no place for temporary files"

    ((list)) && platform=tcg
    prepare_build
    [[ $platform != auto ]] || choose_platform
    check_platform_options
    load_platform
    ((dry_run)) || platform_check
    read -ra kernel_words <<<"${platform_words[*]} $append"
    ((list)) && kernel_words+=(list)
    kernel_words+=(end=1) # last: the image sees by it that no loader has cut its command line
    ((iso)) && prepare_iso
    platform_prepare

    if ((dry_run)); then
        platform_command "${out:-$runs/DATE}"
        platform_commands
    elif ((list)); then
        list_tests
    else
        run_all
    fi
}

main "$@"
