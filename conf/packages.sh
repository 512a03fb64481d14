#!/usr/bin/env bash
# Installs the Debian packages that building, testing or measuring needs, when they are missing.
#   conf/packages.sh build|demo|test|bench|long      demo: for conf/quickstart.sh; long: fuzzing and coverage
# Asks apt only when something is missing, with sudo unless it is root.
set -euo pipefail

build="gcc cmake ninja-build pkg-config libc6-dev libevent-dev libssl-dev libcurl4-openssl-dev libjansson-dev liblmdb-dev libxxhash-dev zlib1g-dev libzstd-dev"
test="libcmocka-dev dpkg-dev systemd python3 python3-venv python3-yaml lmdb-utils binutils strace faketime prometheus mandoc curl openssl nginx-light haproxy"
bench="wrk valgrind"
long="gcovr clang-14 libclang-rt-14-dev"

case "${1:-build}" in
build) wanted="$build" ;;
demo) wanted="$build curl" ;;
test) wanted="$build $test" ;;
bench) wanted="$build $test $bench" ;;
long) wanted="$build $test $long" ;;
*) echo "usage: $0 build|demo|test|bench|long" >&2; exit 2 ;;
esac

missing=""
for package in $wanted; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
# nginx comes in several flavours; any will do.
command -v nginx >/dev/null 2>&1 && missing="${missing/ nginx-light/}"
# The comparison of targets (tests/chain) starts a PostgreSQL of its own.
[ "${1:-build}" != bench ] || command -v psql >/dev/null 2>&1 || missing="$missing postgresql"
# The browser test of the page: Debian's Chromium, driven through Node, which may have come from elsewhere.
if [[ "$wanted" == *"$test"* ]]; then
    command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
    command -v node >/dev/null 2>&1 || missing="$missing nodejs"
    command -v npm >/dev/null 2>&1 || missing="$missing npm"
fi
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing packages:$missing (no apt-get here: install their equivalents)" >&2
    exit 1
fi
sudo=""
[ "$(id -u)" -eq 0 ] || sudo="sudo"
echo "installing:$missing"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
