# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with run-qemu.sh
#
# Debian packages, in two ways: tools are installed (only on --install); other machines' kernels and hypervisors are
# only unpacked, into build/cache, which needs no root and leaves the host alone.

declare -a missing_things=() missing_packages=() wanted_packages=()

# need_command NAME PACKAGE, need_file PATH PACKAGE: note what is missing; have_all then acts on all of it at once.
need_command() {
    command -v "$1" >/dev/null || { missing_things+=("$1") missing_packages+=("$2"); }
}
need_file() {
    [[ -e $1 ]] || { missing_things+=("$1") missing_packages+=("$2"); }
}

# want_file PATH PACKAGE: brought by --install like what is needed; without it one thing less can be done, and that says so
# itself when it is asked for.
want_file() {
    [[ -e $1 ]] || wanted_packages+=("$2")
}

# need_build_tools PRESET: what the image and the host programs of a preset are built with.
need_build_tools() {
    local header
    need_command git git
    need_command cmake cmake
    need_command ninja ninja-build
    need_command g++ g++
    [[ $1 != clang* ]] || need_command clang++ clang
    for header in nlohmann/json.hpp:nlohmann-json3-dev CLI/CLI.hpp:libcli11-dev fmt/core.h:libfmt-dev gelf.h:libelf-dev \
        editline/readline.h:libedit-dev; do
        need_file "/usr/include/${header%:*}" "${header#*:}"
    done
    want_file /usr/share/javascript/chart.js/chart.min.js libjs-chart.js
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "--install: neither root nor sudo here; as root: $(quoted "$@")"
    fi
}

# The line that brings the missing packages.
install_line() {
    if command -v apt-get >/dev/null; then
        printf 'apt-get install %s (or --install)' "${missing_packages[*]}"
    else
        printf 'no apt-get here, so bring what Debian has in: %s' "${missing_packages[*]}"
    fi
}

# apt_install PACKAGE...
apt_install() {
    local fetch=(env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@")
    say "installing $*"
    # A container's package lists are often absent or old: fetch them once the first try failed.
    as_root "${fetch[@]}" >/dev/null 2>&1 ||
        { as_root apt-get update -qq && as_root "${fetch[@]}" >/dev/null; }
}

# have_all: true if nothing noted is missing, or if --install brought it.
have_all() {
    if ((install)) && ((${#wanted_packages[@]})) && command -v apt-get >/dev/null; then
        apt_install "${wanted_packages[@]}" || warn "--install: no ${wanted_packages[*]}: going on without"
        wanted_packages=()
    fi
    ((${#missing_packages[@]})) || return 0
    ((install)) || return 1
    command -v apt-get >/dev/null || die "missing: ${missing_things[*]}; $(install_line)"
    apt_install "${missing_packages[@]}" || die "--install: apt-get install ${missing_packages[*]} failed"
    missing_things=() missing_packages=()
}

# newest REGEX: of the names on standard input the one of the highest version.
newest() { grep -Ex -- "$1" | sort -V | tail -n 1; }

cached_name() { (cd "$cache/packages" 2>/dev/null && printf '%s\n' *) | newest "$1"; }

known_to_apt() { apt-cache search --names-only "^($1)\$" 2>/dev/null | cut -d ' ' -f 1 | newest "$1"; }

# unpack_package REGEX: sets $unpacked to the folder of the newest package whose whole name matches. What the cache has
# is used as it is, so that a run needs no network and two runs have the same system under test.
unpack_package() {
    local regex=$1 name fetch
    name=$(cached_name "$regex")
    unpacked=$cache/packages/${name:-$regex}
    [[ -n $name ]] || ((dry_run)) && return

    command -v apt-get >/dev/null || die "$cache/packages has no $regex, and there is no apt-get here to download it"
    name=$(known_to_apt "$regex")
    if [[ -z $name ]] && ((install)); then
        as_root apt-get update -qq
        name=$(known_to_apt "$regex")
    fi
    [[ -n $name ]] || die "apt knows no package whose name is $regex: apt-get update, or choose another"

    say "downloading $name (once, into ${cache#"$root"/})"
    fetch=$(mktemp -d "$cache/fetch.XXXXXX")
    # As root apt would drop to a user of its own, who may not write here.
    if ! quietly "$fetch/log" env -C "$fetch" apt-get -qq -o APT::Sandbox::User=root download "$name"; then
        warn "$(tail -n 1 "$fetch/log")"
        rm -rf "$fetch"
        die "cannot download $name: is there a network, and are the package lists recent (apt-get update)?"
    fi
    quietly "$fetch/log" dpkg-deb -x "$fetch/"*.deb "$fetch/root" ||
        die "cannot unpack $name into $fetch: $(tail -n 1 "$fetch/log")"
    mkdir -p "$cache/packages"
    mv "$fetch/root" "$cache/packages/$name" # whole or not at all
    rm -rf "$fetch"
    unpacked=$cache/packages/$name
}

# With the lock held nobody else changes the cache; the file descriptor closes, and the lock ends, with this script.
lock_cache() {
    mkdir -p "$cache"
    exec {cache_lock}>"$cache/lock"
    flock -w 600 "$cache_lock" || die "$cache/lock: another run has held it for ten minutes"
}
unlock_cache() { exec {cache_lock}>&-; }
