#!/bin/sh
# man.sh - conf/man holds what the program prints, and mandoc has nothing to say against it.
#   man.sh PROGRAM           compare and lint; exit 77 when only mandoc is missing
#   man.sh PROGRAM --write   put the printed pages into conf/man
set -u
program=$1
folder=$(cd "$(dirname "$0")/.." && pwd)/conf/man
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

for page in sinkonce.8 sinkonce-env.5; do
    env -i "$program" man "${page##*.}" >"$work/$page" || exit 1
    [ "${2:-}" = --write ] && mkdir -p "$folder" && cp "$work/$page" "$folder/$page"
    diff -u "$folder/$page" "$work/$page" || {
        failures=$((failures + 1))
        echo "man: conf/man/$page differs from what sinkonce man prints; run tests/man.sh PROGRAM --write"
    }
done
[ "$failures" -eq 0 ] || exit 1
command -v mandoc >/dev/null 2>&1 || { echo "SKIP: mandoc is not installed"; exit 77; }
mandoc -T lint -W warning "$work"/* || exit 1
echo "ok"
