#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# check_sources.sh shellcheck|clang-format: every file of its kind that git knows.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
command -v "$1" >/dev/null || { echo "SKIP: $1 not found" && exit 77; }

case $1 in
shellcheck)
    # Scripts are known by their first line; the parts of run-qemu.sh have none and name their shell themselves.
    mapfile -t files < <(git ls-files '*.sh' .ci/run)
    shellcheck -x "${files[@]}"
    ;;
clang-format)
    mapfile -t files < <(git ls-files '*.hpp' '*.cpp')
    clang-format --dry-run -Werror "${files[@]}" 2>&1 | { ! grep ": error:"; } # without the excerpts
    ;;
*) echo "check_sources.sh: unknown check $1" >&2 && exit 2 ;;
esac || exit 1
printf '%s: %s files\n' "$1" "${#files[@]}"
