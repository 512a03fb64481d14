#!/usr/bin/env bash
# Builds the unedited Dockerfile and runs the image: I-01 to I-06, and the version of libevent (H-00).
#   tests/image/run.sh            reuses the base that an earlier run made in build/image
#   tests/image/run.sh --fresh    makes it again
# The base image is a stand-in made from Debian's packages, so that no image registry is needed.  Needs root, an apt
# mirror, and a kernel on which a container can run; exits with 77 and the reason where one of these is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "SKIP: $*"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "building and running the image needs root"
command -v apt-get >/dev/null || skip "the stand-in base is made with Debian's tools: no apt-get here"
if ! [ -x /usr/sbin/dockerd ] || ! [ -x /usr/bin/docker ] || ! command -v mmdebstrap >/dev/null; then
    apt-get update -qq || skip "no apt mirror can be reached"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io mmdebstrap >/dev/null ||
        skip "docker.io and mmdebstrap cannot be installed"
fi

cache=$PWD/build/image
mkdir -p "$cache"
work=$(mktemp -d /var/tmp/sinkonce-image-XXXXXX)
daemon=""
export DOCKER_HOST=unix://$work/docker.sock

clean_up() {
    if [ -n "$daemon" ]; then
        local left
        left=$(/usr/bin/docker ps -aq 2>/dev/null) && [ -n "$left" ] && /usr/bin/docker rm -f $left >/dev/null 2>&1
        kill "$daemon" 2>/dev/null
        wait "$daemon" 2>/dev/null
    fi
    umount "$work/exec/netns/default" 2>/dev/null
    rm -rf "$work"
}
trap 'set +e; clean_up' EXIT
trap 'exit 1' INT TERM

make_base() {
    printf 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\n' >"$work/apt-clean"
    mmdebstrap --quiet --variant=minbase --mode=root --format=tar --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
        --include=usr-is-merged,ca-certificates \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' \
        --dpkgopt='path-exclude=/usr/share/groff/*' --dpkgopt='path-exclude=/usr/share/lintian/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --setup-hook='mkdir -p "$1/etc/apt/apt.conf.d"' \
        --customize-hook="copy-in $work/apt-clean /etc/apt/apt.conf.d" \
        --customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname" "$1"/var/cache/apt/*.bin' \
        bookworm "$cache/base.tar.new" && mv "$cache/base.tar.new" "$cache/base.tar"
}

if [ "${1:-}" = --fresh ] || ! [ -s "$cache/base.tar" ]; then
    echo "making the stand-in base"
    make_base >"$cache/base.log" 2>&1 || { tail -n 5 "$cache/base.log"; skip "the stand-in base cannot be made"; }
fi

dockerd --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false --data-root "$work/data" \
    --exec-root "$work/exec" --pidfile "$work/pid" -H "$DOCKER_HOST" >"$cache/dockerd.log" 2>&1 &
daemon=$!
for _ in $(seq 300); do
    /usr/bin/docker info >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.1
done
/usr/bin/docker info >/dev/null 2>&1 || { tail -n 3 "$cache/dockerd.log"; skip "a docker daemon cannot run here"; }

/usr/bin/docker import -c 'CMD ["bash"]' "$cache/base.tar" debian:bookworm-slim >/dev/null
/usr/bin/docker run --rm --network host debian:bookworm-slim true 2>"$cache/run.log" ||
    { cat "$cache/run.log"; skip "a container cannot run here"; }

echo "building the image"
if ! DOCKER_BUILDKIT=1 /usr/bin/docker build --network host --progress plain -t sinkonce:ci . >"$cache/build.log" 2>&1; then
    tail -n 30 "$cache/build.log"
    echo "FAIL I-01: the Dockerfile does not build"
    exit 1
fi
echo "ok   I-01 the unedited Dockerfile builds"
python3 -B tests/image/checks.py
