#!/usr/bin/env bash
# Turns this process, the first of its own namespaces (run.sh), into the systemd of the system in ROOT.
#   boot.sh ROOT CGROUP
# It gets a group of its own in the unified hierarchy, which is there beside the older ones, too.
set -euo pipefail
root=$1 group=$2

if [ "${3:-}" != in-group ]; then
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t cgroup2 cgroup2 "$root/mnt"
    mkdir "$root/mnt/$group"
    echo 0 >"$root/mnt/$group/cgroup.procs"
    umount "$root/mnt"
    exec unshare --cgroup "$0" "$root" "$group" in-group
fi
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
cd "$root"
pivot_root . mnt
cd /
umount -l /mnt
# As a machine's own systemd finds it: credentials reach a service by propagation.
mount --make-rshared /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
