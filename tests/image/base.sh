#!/usr/bin/env bash
# Makes a stand-in for the official image debian:SUITE-slim out of Debian's packages, so that no image registry is
# needed.
#   base.sh SUITE FILE     writes the root file system to FILE (tar) unless it is there already
# Who comes second waits for the first.  Exits with 77 and the reason where it cannot be made.
set -euo pipefail
suite=$1 file=$2

skip() { echo "SKIP: $*"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "making the stand-in base needs root"
mkdir -p "$(dirname "$file")"
exec 9>"$file.lock"
flock 9
[ -s "$file" ] && exit 0

command -v apt-get >/dev/null || skip "the stand-in base is made with Debian's tools: no apt-get here"
if ! command -v mmdebstrap >/dev/null; then
    apt-get update -qq || skip "no apt mirror can be reached"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends mmdebstrap \
        >/dev/null || skip "mmdebstrap cannot be installed"
fi

work=$(mktemp -d)
trap 'rm -rf "$work" "$file.new"' EXIT
printf 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\n' >"$work/apt-clean"
# A release from 13 on has the merged /usr by itself.
merged=""
[ "$suite" != bookworm ] || merged="--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include=usr-is-merged"
mmdebstrap --quiet --variant=minbase --mode=root --format=tar $merged \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/groff/*' --dpkgopt='path-exclude=/usr/share/lintian/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --setup-hook='mkdir -p "$1/etc/apt/apt.conf.d"' \
    --customize-hook="copy-in $work/apt-clean /etc/apt/apt.conf.d" \
    --customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname" "$1"/var/cache/apt/*.bin' \
    "$suite" "$file.new" >"$file.log" 2>&1 || { tail -n 5 "$file.log"; skip "the stand-in base cannot be made"; }
mv "$file.new" "$file"
