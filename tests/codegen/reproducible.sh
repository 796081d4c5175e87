#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# reproducible.sh SOURCE BUILD IMAGE: builds the image a second time, in another folder, and compares bit by bit. A result names its
# image by hash; that means something only if the same source gives the same image.
set -euo pipefail
source=$1
build=$2
image=$3
value() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt"; }

other=$(mktemp -d)
trap 'rm -rf "$other"' EXIT
cmake -S "$source" -B "$other/second" -G Ninja -DCMAKE_CXX_COMPILER="$(value CMAKE_CXX_COMPILER)" \
    -DCMAKE_C_COMPILER="$(value CMAKE_C_COMPILER)" -DCMAKE_BUILD_TYPE="$(value CMAKE_BUILD_TYPE)" \
    -DSPINKICK_PRESET="$(value SPINKICK_PRESET)" -DSPINKICK_UBSAN_TRAP="$(value SPINKICK_UBSAN_TRAP)" >/dev/null
cmake --build "$other/second" --target spinkick -j 2 >/dev/null
cmp "$image" "$other/second/spinkick.elf" || {
    echo "reproducible: the second build differs"
    exit 1
}
echo "reproducible: $(sha256sum "$image" | cut -d' ' -f1)"
