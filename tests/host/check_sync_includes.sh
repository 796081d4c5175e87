#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# kernel/sync runs in the kernel, on host threads and under a checker, so it may include its own headers, kernel/types.hpp
# and those standard headers that are freestanding in fact. Debian's g++ does not hide the others: this list does.
#
# usage: check_sync_includes.sh ROOT    exits 1 and names every line that is not allowed
set -eu

root=${1:?usage: check_sync_includes.sh ROOT}
allowed='^"kernel/sync/[a-z0-9_]+\.(hpp|def)"$|^"kernel/types\.hpp"$'
allowed="$allowed|^<(algorithm|array|atomic|bit|charconv|compare|concepts|cstddef|cstdint|limits|optional|span|string_view|tuple|type_traits|utility)>\$"

files=$(find "$root/kernel/sync" -type f)
[ -n "$files" ] || { echo "no file under $root/kernel/sync: nothing was checked"; exit 1; }

# Fences are refused by g++ under ThreadSanitizer, and the checker cannot see them; a full barrier is a seq_cst exchange.
bad=$(find "$root/kernel/sync" -type f -exec awk -v allowed="$allowed" '
    /^[ \t]*#[ \t]*include/ {
        name = $0
        sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
        sub(/[ \t]*(\/\/.*)?$/, "", name)
        if (name !~ allowed) print FILENAME ":" FNR ": include not allowed: " name
    }
    /atomic_thread_fence|__sync_|__asm|[^_a-z]asm[ \t]*(volatile)?[ \t]*\(/ {
        if ($0 !~ /^[ \t]*\/\//) print FILENAME ":" FNR ": not allowed here: " $0
    }' {} +)
if [ -n "$bad" ]; then
    echo "$bad"
    exit 1
fi
echo "$(echo "$files" | wc -l) files, nothing but the allow-list"
