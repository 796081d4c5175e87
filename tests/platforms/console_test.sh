#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# console_test.sh PRESET OUT: 16 vCPUs print 1,000 lines each, every tenth from an interrupt handler, each with its own checksum. All
# 16,000 must arrive, whole and once: nothing lost, nothing mixed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=$1
out=$2

"$root"/run-qemu.sh --on tcg --smp 16 --preset "$preset" --out "$out" --timeout 240 --append "tests=smp.console_lines" >/dev/null
"$root/build/$preset/tests/host/check_console_lines" "$out/serial.log" 16 1000
