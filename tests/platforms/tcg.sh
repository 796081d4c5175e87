# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# tcg: plain emulation, on any machine.

platform_defaults() {
    outside_view=virtual
    default_smp=4 default_mem=256 default_machine=q35
    # The least of the 64-bit models, not `max`: the image needs x86-64's baseline alone, and a feature that it took
    # without asking CPUID would go unseen on a model that has them all.
    default_cpu=qemu64
    default_timeout=120
    # More threads than that on an emulated machine only wait for each other, up to the watchdog.
    platform_words=(bench_cpus=16)
    timing=emulated
}

platform_check() { need_qemu; }

platform_prepare() { :; }

platform_command() { image_command tcg "$cpu"; }
