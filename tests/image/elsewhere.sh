#!/usr/bin/env bash
# A long run: the program on another machine than that of the suite, and its tests there.
#   tests/image/elsewhere.sh trixie [CTEST_REGEX]     Debian 13, with its newer compiler and libcurl
#   tests/image/elsewhere.sh arm64 [CTEST_REGEX]      built by Debian's cross compiler, run under qemu's user mode
# All of it happens in a throw-away Debian system below build/image; nothing is added to this one.  Needs root and an apt
# mirror; exits with 77 and the reason where that is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Deciders, ledger, HTTP codec, corpora: what may differ by compiler, alignment or signed characters.
unit='http1.*|json_.*|locator|coding|identify.*|plan|prober_.*|settings.*|outcome|log.*|metrics.*|reply|pass|acks|.*_answer|text|cli_parse|cli_print|chunk|format|line|applied|machine|dump|damage|contract_.*|corpus_.*'
skip() { echo "SKIP: $*"; exit 77; }
listed() { sed -n "s/^$1=\"\(.*\)\"/\1/p" conf/packages.sh | tr ' ' '\n'; }

place=${1:-}
case $place in
trixie)
    suite=trixie architectures=amd64
    packages="$(listed build) libcmocka-dev python3 curl openssl"
    run="" options=""
    # The target's side as well: all that libcurl does, and chaos between it and the target.
    tests="$unit|upstream.*|resolver|admin|admin_gate|broken|target|chaos"
    ;;
arm64)
    suite=bookworm architectures=amd64,arm64
    packages="gcc-aarch64-linux-gnu gcc libc6-dev cmake ninja-build pkg-config python3 qemu-user-static libcmocka-dev:arm64
        $(listed build | grep -e '-dev$' | grep -v '^libc6-dev$' | sed 's/$/:arm64/')"
    run=qemu-aarch64-static options=-DCMAKE_TOOLCHAIN_FILE=/arm64.cmake
    # Processes, timers and file systems are not what another processor changes, and qemu is slow.
    tests=$unit
    ;;
*) echo "usage: $0 trixie|arm64 [CTEST_REGEX]" >&2; exit 2 ;;
esac
tests=${2:-$tests}
cache=$PWD/build/image
root=$cache/$place

[ "$(id -u)" -eq 0 ] || skip "the throw-away system needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
# Made anew when the packages are others than those that it was made with.
if [ "$(cat "$root/made" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$root"
    mkdir -p "$cache"
    mmdebstrap --quiet --variant=apt --mode=root --architectures=$architectures --include="$(echo $packages | tr ' ' ,)" \
        "$suite" "$root" >"$cache/$place.log" 2>&1 || { tail -n 5 "$cache/$place.log"; skip "the throw-away system cannot be made"; }
    echo "$packages" >"$root/made"
fi
rm -rf "$root/src" && mkdir "$root/src"
cp -a CMakeLists.txt README.md include proxy store conf tests "$root/src"
cat >"$root/arm64.cmake" <<'TOOLS'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
TOOLS

# With its own /proc and /dev, which go when the command ends.
inside() {
    unshare --mount --pid --fork --kill-child sh -euc '
        root=$1; shift
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" "$@"' sh "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"
}
[ $place = trixie ] || export_libraries="PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig"
inside ${export_libraries:-} sh -euc 'cmake -S /src -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release $0; ninja -C /build -j2' "$options" \
    >"$cache/$place.build.log" 2>&1 || { grep -E -A5 'rror:|FAILED' "$cache/$place.build.log" | head -n 30; echo "FAIL: it does not build on $place"; exit 1; }
inside $run /build/proxy/sinkonce --version --verbose
inside ctest --test-dir /build -j2 --output-on-failure -R "^($tests)\$"
