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
need_file /usr/include/gtest/gtest.h libgtest-dev
# Opens the page of `spinkick-report html`: 100 MB to download, 310 MB installed, and only for what is run by hand.
[[ "${selection[*]-}" != *evidence-6* ]] || command -v chromium >/dev/null ||
    want_file /usr/bin/chromium-headless-shell chromium-headless-shell
have_all || die "${missing_things[*]} not found: $(install_line)"

# What takes long is run by hand, by its label.
[[ ${selection[*]-} == *-L* ]] || selection+=(-LE '^evidence-')

jobs=$(nproc)
failed=()
for preset in "${presets[@]}"; do
    say "preset $preset: building"
    log=build/$preset-build.log
    mkdir -p build
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs"; } >"$log" 2>&1; then
        tail -n 30 "$log"
        die "preset $preset cannot be built (all of it: $log)"
    fi
    say "preset $preset: testing"
    # Two at a time: boots wait for each other (RESOURCE_LOCK), host tests run beside them.
    ctest --test-dir "build/$preset" --output-on-failure --no-tests=ignore -j 2 "${selection[@]}" || failed+=("$preset")
done

if ((${#failed[@]})); then
    say "failed: ${failed[*]}"
    exit "$EXIT_FAIL"
fi
say "all passed in ${presets[*]}"
