#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# under_load.sh [--hogs N] COMMAND...: runs it while every CPU that this script may use, or N of them, has something else
# to do.
set -u -o pipefail
count=$(nproc)
if [[ $1 == --hogs ]]; then
    count=$2
    shift 2
fi
hogs=()
trap '((${#hogs[@]})) && kill "${hogs[@]}" 2>/dev/null' EXIT
for ((i = 0; i < count; i++)); do
    timeout 7200 sh -c 'while :; do :; done' &
    hogs+=($!)
done
"$@"
