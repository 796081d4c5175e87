#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# under_load.sh COMMAND...: runs it while every CPU that this script may use has something else to do.
set -u -o pipefail
hogs=()
trap '((${#hogs[@]})) && kill "${hogs[@]}" 2>/dev/null' EXIT
for ((i = 0; i < $(nproc); i++)); do
    timeout 7200 sh -c 'while :; do :; done' &
    hogs+=($!)
done
"$@"
