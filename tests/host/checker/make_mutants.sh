#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Copies kernel/sync to OUT and puts all mutations into the copies; OUT/mutants.txt lists them (make_mutants.awk).
#
# usage: make_mutants.sh ROOT OUT
set -eu

root=${1:?usage: make_mutants.sh ROOT OUT}
out=${2:?usage: make_mutants.sh ROOT OUT}
here=$(dirname "$0")

mkdir -p "$out/kernel/sync"
cp "$root"/kernel/sync/* "$out/kernel/sync/"
list=$out/mutants.txt
: > "$list"

mutate() { # HEADER LOCK
    first=$(($(wc -l < "$list") + 1))
    awk -v list="$list" -v first="$first" -v lock="$2" -f "$here/make_mutants.awk" \
        "$root/kernel/sync/$1" > "$out/kernel/sync/$1"
}

# What several locks share is checked by the one that uses it most.
mutate lock_word.hpp ticket
mutate mcs_node.hpp queued
mutate pv_hash.hpp pv-queued
mutate pv_queue_2014.hpp pv-queued-2014
mutate unfair_queue.hpp unfair-queued
for path in "$root"/kernel/sync/*_lock.hpp; do
    header=${path##*/}
    case $header in
    null_lock.hpp | broken_lock.hpp) ;; # faulty as they are
    *) mutate "$header" "" ;;
    esac
done
echo "$(wc -l < "$list") mutants in $out"
