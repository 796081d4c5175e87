#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# deb_test.sh BUILD CACHE [quick]: makes the Debian package of a build, unpacks it into a clean folder, and does the main job with
# it from another folder, as a user without rights to /dev/kvm. CACHE is a folder of unpacked packages, so that nothing is
# downloaded. `quick`: a boot by plain emulation instead of the main job.
set -u -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 cache=$2 quick=${3:-}
for tool in cpack dpkg-deb dpkg-shlibdeps qemu-system-x86_64; do
    command -v "$tool" >/dev/null || { echo "SKIP: $tool not found"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
failures=0
fail() {
    echo "deb_test.sh: $*"
    failures=$((failures + 1))
}

flock "$build/lock" cmake --build "$build" --target spinkick spinkick-report >"$work/build.log" 2>&1 ||
    { tail -n 20 "$work/build.log"; exit 1; }
cpack --config "$build/CPackConfig.cmake" -B "$work/deb" >"$work/cpack.log" 2>&1 || { tail -n 20 "$work/cpack.log"; exit 1; }
deb=$(echo "$work"/deb/spinkick_*_amd64.deb)
[[ -e $deb ]] || { echo "no package in $work/deb"; exit 1; }
dpkg-deb -I "$deb" | grep -E 'Package|Version|Depends|Installed-Size'
dpkg-deb -x "$deb" "$work/root" || exit 1
usr=$work/root/usr

for file in bin/spinkick bin/spinkick-report lib/spinkick/spinkick.elf share/man/man1/spinkick.1 share/man/man1/spinkick-report.1 \
    share/bash-completion/completions/spinkick share/doc/spinkick/copyright share/doc/spinkick/on-your-host.md; do
    [[ -e $usr/$file ]] || fail "the package has no /usr/$file"
done
grep -rlsF "$(cd "$here/.." && pwd)" "$usr/bin" "$usr/lib/spinkick" --include='*.sh' && fail "a script knows the folder it was built in"

# Every option is explained by the manual page and offered by the completion; every command of the report tool too.
PATH=$usr/bin:$PATH
for option in $(spinkick --help | grep -oE '(^|[ ])--[a-z-]+' | sort -u); do
    grep -qF -- "${option//-/\\-}" "$usr/share/man/man1/spinkick.1" || fail "spinkick.1 does not explain $option"
    [[ $option == --preset ]] || grep -qF -- "$option" "$usr/share/bash-completion/completions/spinkick" || fail "no completion of $option"
done
for command in $(spinkick-report --help | sed -n '/Subcommands:/,$s/^  \([a-z-]*\) .*/\1/p'); do
    grep -qF -- "${command//-/\\-}" "$usr/share/man/man1/spinkick-report.1" || fail "spinkick-report.1 does not name $command"
done
if command -v man >/dev/null; then
    for page in spinkick spinkick-report; do
        complaints=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$usr/share/man/man1/$page.1" 2>&1 >/dev/null)
        [[ -z $complaints ]] || fail "$page.1: $complaints"
    done
fi
# shellcheck disable=SC1091 # of the package
completed=$(bash -c ". '$usr/share/bash-completion/completions/spinkick'; COMP_WORDS=(spinkick --on xen-d) COMP_CWORD=2; _spinkick; echo \"\${COMPREPLY[*]}\"")
[[ $completed == *xen-domu-pvh*xen-domu-hvm* ]] || fail "--on xen-d completes to '$completed'"

# As somebody else, from a folder of his own, without KVM.
mkdir -p "$work/home/.cache" "$work/desk"
as_user=()
if ((EUID == 0)); then
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    # His cache takes what was unpacked before; links are enough, since it is only added to.
    mkdir -p "$work/home/.cache/spinkick/packages"
    for package in "$cache"/packages/*; do ln -s "$package" "$work/home/.cache/spinkick/packages/"; done
    chown -R 65534:65534 "$work/home" "$work/desk"
else
    ln -s "$cache" "$work/home/.cache/spinkick"
fi
job=(spinkick --out results)
[[ -z $quick ]] || job+=(--on tcg --smp 2 --append "tests=smp.*,lock.try_lock")
code=0
# shellcheck disable=SC2016 # for the inner shell
"${as_user[@]}" env -i PATH="$usr/bin:/usr/bin:/bin:/usr/sbin:/sbin" HOME="$work/home" SPINKICK_KVM_DEVICE=/dev/full/kvm \
    bash -c 'cd "$1" && shift && "$@"' - "$work/desk" "${job[@]}" >"$work/job.log" 2>&1 || code=$?
tail -n 6 "$work/job.log"
((code == 0)) || { fail "${job[*]}: exit code $code"; head -n 20 "$work/job.log"; }
for file in serial.log results.json results.tap junit.xml command.txt; do
    [[ -s $work/desk/results/$file ]] || fail "the run left no $file"
done
((failures == 0))
