#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Builds every preset that has tests and runs them all with CTest.
set -u -o pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2
# shellcheck source=tests/platforms/lib.sh
source tests/platforms/lib.sh
# shellcheck source=tests/platforms/packages.sh
source tests/platforms/packages.sh

usage() {
    cat <<'TEXT'
usage: tests/run.sh [--install] [--preset NAME]... [--label REGEX] [--exclude REGEX]
Configures, builds and tests the presets release, clang and host-tsan, or those that are named.

  --install        bring missing Debian packages (apt-get, with sudo if not root)
  --label REGEX    only tests with a label that matches: boot, host, codegen, source, usage, soak, a platform, or evidence-N
                   (tests of many minutes, which run only if they are named)
  --exclude REGEX  no tests with such a label
Exit codes: 0 all passed or skipped, 1 a test failed, 2 something could not be built.
TEXT
}

install=0
presets=() selection=()
while (($#)); do
    case $1 in
    --install) install=1 ;;
    --preset | --label | --exclude)
        (($# > 1)) || die "$1: its value is missing"
        case $1 in
        --preset) presets+=("$2") ;;
        --label) selection+=(-L "$2") ;;
        --exclude) selection+=(-LE "$2") ;;
        esac
        shift
        ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown option $1 (--help lists them)" ;;
    esac
    shift
done
((${#presets[@]})) || presets=(release clang host-tsan)

need_build_tools clang
need_command shellcheck shellcheck
need_command clang-format clang-format
need_command qemu-system-x86_64 qemu-system-x86
need_command grub-mkrescue grub-common
need_command xorriso xorriso
need_command mformat mtools
need_command xz xz-utils
need_file /usr/lib/grub/i386-pc grub-pc-bin
need_file /usr/lib/grub/x86_64-efi grub-efi-amd64-bin
need_file /usr/share/OVMF/OVMF_CODE_4M.fd ovmf
need_file /usr/include/gtest/gtest.h libgtest-dev
need_file /usr/include/benchmark/benchmark.h libbenchmark-dev
need_file /usr/include/ck_spinlock.h libck-dev
want_file /usr/bin/valgrind valgrind   # counts instructions
want_file /usr/bin/xmllint libxml2-utils # reads JUnit against its schema
# Opens the page of `spinkick-report html`: 100 MB to download, 310 MB installed, and only for what is run by hand.
[[ "${selection[*]-}" != *evidence-6* ]] || command -v chromium >/dev/null ||
    want_file /usr/bin/chromium-headless-shell chromium-headless-shell
have_all || die "${missing_things[*]} not found: $(install_line)"

# What takes long is run by hand, by its label.
[[ ${selection[*]-} == *-L* ]] || selection+=(-LE '^evidence-')

jobs=$(nproc)
failed=()
mkdir -p build

build() {
    cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs"
} >"build/$1-build.log" 2>&1

# build_in_the_gaps PRESET...: while tests run, with what they leave of the CPUs. In a session of its own, whose whole group gives
# way to the others: to nice alone each session counts as much as another.
build_in_the_gaps() {
    (($#)) || return 0
    export -f build
    export jobs
    # shellcheck disable=SC2016 # for the inner shell
    setsid nice -n 19 bash -c '
        if [[ -w /proc/self/autogroup ]]; then echo 19 >/proc/self/autogroup; fi
        for preset in "$@"; do build "$preset" || exit; done' build_in_the_gaps "$@" &
    builder=$!
}

builder=
trap '[[ -z $builder ]] || kill -- "-$builder" 2>/dev/null' EXIT
for ((i = 0; i < ${#presets[@]}; i++)); do
    preset=${presets[i]}
    say "preset $preset: building"
    if ((i == 1)); then wait "$builder"; fi # what failed there fails here again, and is shown
    if ! build "$preset"; then
        tail -n 30 "build/$preset-build.log"
        die "preset $preset cannot be built (all of it: build/$preset-build.log)"
    fi
    ((i > 0)) || build_in_the_gaps "${presets[@]:1}"
    say "preset $preset: testing"
    # Two at a time: boots wait for each other (RESOURCE_LOCK), host tests run beside them.
    ctest --test-dir "build/$preset" --output-on-failure --no-tests=ignore -j 2 "${selection[@]}" || failed+=("$preset")
done
builder=

if ((${#failed[@]})); then
    say "failed: ${failed[*]}"
    exit "$EXIT_FAIL"
fi
say "all passed in ${presets[*]}"
