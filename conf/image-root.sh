#!/bin/sh
# Lays a folder out as the file system of an image that holds one program and what it needs at run time.
#   image-root.sh PROGRAM ROOT
# Runs in the build stage.  What the program needs is asked of its loader and of dpkg, not kept as a list of package
# names, which differ from one Debian release to the next.  The packages' entries come along for scanners of images, a
# list of them for `sinkonce --version --verbose`, and their licences, which is owed to the authors.
set -eu
program=$1 root=$2
user=65532
entries=$root/var/lib/dpkg/status.d

# Copy a file and, when it is a link, what it leads to; each to where it really lies (/lib is a link to usr/lib).
copy() {
    folder=$(cd "$(dirname "$1")" && pwd -P)
    path=$folder/$(basename "$1")
    mkdir -p "$root$folder"
    cp -a "$path" "$root$path"
    enter "$path"
    [ ! -L "$path" ] || copy "$(cd "$folder" && realpath --no-symlinks "$(readlink "$path")")"
}

# Note the package that a file came from.  dpkg knows some by the path without /usr.
enter() {
    owner=$(dpkg-query -S "$1" "${1#/usr}" 2>/dev/null | head -n 1) || true
    package=${owner%%: *}
    name=${package%%:*}
    [ -n "$name" ] || { echo "no package has $1" >&2; exit 1; }
    [ ! -e "$entries/$name" ] || return 0
    dpkg-query -s "$package" >"$entries/$name"
    mkdir -p "$root/usr/share/doc/$name"
    cp -L "/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/"
}

mkdir -p "$root/usr/lib" "$root/usr/local/bin" "$root/etc/ssl/certs" "$entries"
for folder in /lib /lib64; do
    [ ! -L "$folder" ] || cp -a "$folder" "$root$folder"
done

# The program is asked what it loads; glibc itself loads libgcc_s.so.1 by name when a thread is ended.
libraries=$(ldd "$program" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }')
gcc_library=$(ldconfig -p | awk '$1 == "libgcc_s.so.1" { print $NF; exit }')
for library in $libraries $gcc_library; do
    copy "$library"
done

# What the libraries read: names, certificates, OpenSSL's settings; and which Debian this is.
copy /etc/os-release
copy /etc/debian_version
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
enter /usr/sbin/update-ca-certificates
settings=$(openssl version -d | sed 's/.*"\(.*\)".*/\1/')
mkdir -p "$root$settings"
cp -L "$settings/openssl.cnf" "$root$settings/"
ln -s /etc/ssl/certs "$root$settings/certs"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
echo "sinkonce:x:$user:$user::/var/lib/sinkonce:/usr/sbin/nologin" >"$root/etc/passwd"
echo "sinkonce:x:$user:" >"$root/etc/group"

mkdir -p "$root/usr/share/sinkonce"
(cd "$entries" && dpkg-query -W -f '${Package} ${Version}\n' *) >"$root/usr/share/sinkonce/packages"
install -d -o "$user" -g "$user" -m 0700 "$root/var/lib/sinkonce"
install -m 0755 -t "$root/usr/local/bin" "$program"
