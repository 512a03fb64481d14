#!/usr/bin/env bash
# Makes the Debian package, looks at it and at the systemd unit, and takes the package through its life under a real
# systemd in a throw-away system.
#   run.sh BUILD_FOLDER            the folder of a Release build
# The system is the stand-in for debian:bookworm-slim (tests/image/base.sh) with systemd in it, in namespaces and a
# control group of its own.  Exits with 77 and the reason where this cannot run.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
unit=conf/systemd/sinkonce.service
exposure_max=20 # tenths, of systemd-analyze security

skip() { echo "SKIP: $*"; exit 77; }
fail() { echo "FAIL: $*"; exit 1; }

[ "$(id -u)" -eq 0 ] || skip "installing a package needs root"
for tool in cpack dpkg-shlibdeps systemd-analyze; do
    command -v "$tool" >/dev/null || skip "no $tool here"
done
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ "$suite" = bookworm ] || skip "the package of this build is for $suite, the throw-away system is bookworm"
base=$PWD/build/image/bookworm.tar
tests/image/base.sh bookworm "$base"

work=$(mktemp -d /var/tmp/sinkonce-deb-XXXXXX)
root=$work/root
group=${work##*/}
launcher=""

# systemd's child dies with it, and so do all of its namespaces.
clean_up() {
    if [ -n "$launcher" ]; then
        kill -KILL $(pgrep -P "$launcher") "$launcher" 2>/dev/null
        wait "$launcher" 2>/dev/null
    fi
    # A group can go only once the last of its processes has.
    unshare --mount sh -c 'mount -t cgroup2 cgroup2 /mnt || exit
        for _ in $(seq 100); do
            [ -e "/mnt/$0" ] || exit
            find "/mnt/$0" -depth -type d -exec rmdir {} \;
            sleep 0.1
        done' "$group" 2>/dev/null
    rm -rf "$work"
}
trap 'set +e; clean_up' EXIT
trap 'exit 1' INT TERM

look_at_package() {
    cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/cpack" >"$work/cpack.log" 2>&1 ||
        { tail -n 20 "$work/cpack.log"; fail "cpack makes no package"; }
    package=$(echo "$work"/cpack/*.deb)
    dpkg-deb -f "$package" Depends >"$work/depends"
    local library file
    for library in libc6 libcurl4 libevent-core-2.1-7 libevent-openssl-2.1-7 libjansson4 liblmdb0 libssl3 libxxhash0 \
        libzstd1 zlib1g; do
        grep -q "\b$library (>= " "$work/depends" || fail "does not depend on $library: $(cat "$work/depends")"
    done
    dpkg-deb -c "$package" >"$work/contents"
    for file in usr/bin/sinkonce etc/sinkonce/sinkonce.env usr/lib/systemd/system/sinkonce.service \
        usr/share/man/man8/sinkonce.8.gz usr/share/man/man5/sinkonce-env.5.gz usr/share/doc/sinkonce/copyright \
        usr/share/doc/sinkonce/changelog.gz usr/share/doc/sinkonce/examples/credentials.conf; do
        grep -q " \./$file\$" "$work/contents" || fail "$file is not in the package"
    done
    echo "ok   deb holds what it should, and depends on what the program loads"
}

ask_lintian() {
    command -v lintian >/dev/null || { echo "     lintian is not installed: not asked"; return; }
    # The source tree names no holder of its copyright, and nothing is made up for it.
    lintian --allow-root --fail-on error,warning --suppress-tags copyright-without-copyright-notice "$package" \
        >"$work/lintian" 2>&1 || { cat "$work/lintian"; fail "lintian has something to say"; }
    echo "ok   deb: lintian has nothing to say"
}

look_at_unit() {
    systemd-analyze security --offline=yes --threshold=$exposure_max --no-pager "$unit" >"$work/security" 2>&1 ||
        { grep -v '✓' "$work/security"; fail "the unit is more exposed than $exposure_max tenths"; }
    echo "ok   unit: exposure $(sed -n 's/.*exposure level.*: \([0-9.]*\).*/\1/p' "$work/security") of 10"
}

# The throw-away system, with the package beside it.
make_system() {
    mkdir "$root"
    tar xf "$base" -C "$root"
    cp "$package" "$root/root/sinkonce.deb"
    cp tests/deb/life.sh conf/systemd/credentials.conf "$root/root/"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
        --no-install-recommends systemd procps adduser dbus' >"$work/apt.log" 2>&1 ||
        { tail -n 3 "$work/apt.log"; skip "systemd cannot be installed in the throw-away system"; }
}

inside() { timeout -s KILL 300 nsenter -t "$first" --mount --pid --ipc --uts --cgroup "$@" </dev/null; }

boot() {
    unshare --mount --pid --ipc --uts --fork --kill-child tests/deb/boot.sh "$root" "$group" \
        </dev/null >"$work/boot.log" 2>&1 &
    launcher=$!
    local state=""
    for _ in $(seq 300); do
        first=$(pgrep -P "$launcher" || true)
        kill -0 "$launcher" 2>/dev/null || break
        [ -n "$first" ] && [ "$(cat "/proc/$first/comm" 2>/dev/null)" = systemd ] &&
            state=$(inside systemctl is-system-running 2>/dev/null) && break
        sleep 0.1
    done
    [ "$state" = running ] || { tail -n 5 "$work/boot.log"; skip "systemd cannot run in a namespace here ($state)"; }
}

look_at_package
ask_lintian
look_at_unit
make_system
boot
inside bash /root/life.sh >"$work/life.log" 2>&1 || { tail -n 40 "$work/life.log"; fail "the package in a throw-away system"; }
grep '^ok ' "$work/life.log"
