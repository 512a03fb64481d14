#!/usr/bin/env bash
# Builds the unedited Dockerfile and runs the image: I-01 to I-08, and the version of libevent (H-00).  Then conf/compose,
# as far as it can run without pulling images (compose.py).
#   tests/image/run.sh                     on Debian 12; what an earlier run made in build/image is used again
#   tests/image/run.sh --debian trixie     the same on Debian 13
#   tests/image/run.sh --fresh             the base image is made anew
# The base image is a stand-in (base.sh).  Needs root, an apt mirror, and a kernel on which a container can run; exits
# with 77 and the reason where one of these is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "SKIP: $*"; exit 77; }

suite=bookworm is_fresh=no
while [ $# -gt 0 ]; do
    case $1 in
    --debian) suite=$2; shift ;;
    --fresh) is_fresh=yes ;;
    *) echo "usage: $0 [--debian SUITE] [--fresh]" >&2; exit 2 ;;
    esac
    shift
done
cache=$PWD/build/image
base=$cache/$suite.tar

[ "$(id -u)" -eq 0 ] || skip "building and running the image needs root"
[ $is_fresh = no ] || rm -f "$base"
tests/image/base.sh "$suite" "$base"
if ! [ -x /usr/sbin/dockerd ] || ! [ -x /usr/bin/docker ] || ! command -v docker-compose >/dev/null; then
    apt-get update -qq || skip "no apt mirror can be reached"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
        docker.io docker-compose >/dev/null ||
        skip "docker.io and docker-compose cannot be installed"
fi

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

dockerd --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false --data-root "$work/data" \
    --exec-root "$work/exec" --pidfile "$work/pid" -H "$DOCKER_HOST" >"$cache/dockerd.log" 2>&1 &
daemon=$!
for _ in $(seq 300); do
    /usr/bin/docker info >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.1
done
/usr/bin/docker info >/dev/null 2>&1 || { tail -n 3 "$cache/dockerd.log"; skip "a docker daemon cannot run here"; }

/usr/bin/docker import -c 'CMD ["bash"]' "$base" "debian:$suite-slim" >/dev/null
/usr/bin/docker run --rm --network host "debian:$suite-slim" true 2>"$cache/run.log" ||
    { cat "$cache/run.log"; skip "a container cannot run here"; }

build() {
    DOCKER_BUILDKIT=1 /usr/bin/docker build --network host --progress plain --build-arg "DEBIAN=$suite" "$@" \
        >>"$cache/build.log" 2>&1
}

echo "building the image on $suite"
: >"$cache/build.log"
if ! build -t sinkonce:ci .; then
    tail -n 30 "$cache/build.log"
    echo "FAIL I-01: the Dockerfile does not build"
    exit 1
fi
echo "ok   I-01 the unedited Dockerfile builds"
python3 -B tests/image/checks.py

[ "$suite" = bookworm ] || exit 0 # the Prometheus of this machine runs in the base
build --target sample-target -t sinkonce-sample-target:ci . || { tail -n 30 "$cache/build.log"; echo "FAIL: the sample target does not build"; exit 1; }
command -v prometheus >/dev/null || { echo "     prometheus is not installed: conf/compose was not run"; exit 0; }
mkdir "$work/prometheus"
cp "$(command -v prometheus)" "$work/prometheus/"
cat >"$work/prometheus/Dockerfile" <<'PROMETHEUS'
FROM debian:bookworm-slim
COPY prometheus /bin/
ENTRYPOINT ["/bin/prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
PROMETHEUS
build -t prometheus:ci "$work/prometheus" || { tail -n 30 "$cache/build.log"; echo "FAIL: Prometheus"; exit 1; }
python3 -B tests/image/compose.py
