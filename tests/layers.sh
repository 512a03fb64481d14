#!/bin/bash
# Checks what the linker does not: who may include what, what the pure core may call, and what nobody may.
#
#   layers.sh [ROOT]     exit 0 when every rule holds; else one line per breach
#   layers.sh --control  plants one breach of each rule in a copy and demands that it is found
# PARTS=text or symbols: only the rules about text, or about what objects need.
#
# Directions: proxy -> include <- store.  One door to each library.  Deciders have no clock, socket, file or thread.
set -u
CC=${CC:-gcc}
parts=${PARTS:-text symbols}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
breaches=0

breach() { echo "layers: $*"; breaches=$((breaches + 1)); }

# Code without comments and without what only a negative control switches on; each line as FILE:TEXT.
code() {
    (cd "$root" && perl -0777 -ne '
        s{/\*.*?\*/}{ }gs;
        s{^#ifdef BREAK_.*?^#(?:else|endif)[^\n]*}{}gsm;
        for my $line (split /\n/) { print "$ARGV:$line\n" if $line =~ /\S/ }' \
        include/*.h include/tbl/*.h proxy/*.[ch] store/*.[ch])
}

# Only files whose path matches ALLOWED may hold a line that matches PATTERN.
only_in() {
    local what=$1 pattern=$2 allowed=$3 line
    while IFS= read -r line; do
        breach "$what: $line"
    done < <(grep -E "^[^:]*:.*$pattern" "$work/code" | grep -Ev "^($allowed):")
}

nowhere() { only_in "$1" "$2" 'no file'; }

check_includes() {
    only_in 'lmdb outside the ledger' '#include <lmdb\.h>' 'store/(env|rows_lmdb)\.[ch]'
    only_in 'curl outside the target client' '#include <curl/' 'proxy/(upstream[a-z_]*\.[ch]|cli_http\.c|cli_version\.c)'
    only_in 'bufferevents outside connections' '#include <event2/(bufferevent|buffer)' 'proxy/conn\.c'
    only_in 'OpenSSL outside the TLS files' '#include <openssl/' 'proxy/(tls[a-z_]*|cli_version)\.[ch]'
    only_in 'libevent outside the loops' '#include <event2/' \
        'proxy/(conn|listener|loop|serve|prober|upstream[a-z_]*|admin_health|cli_version)\.[ch]'
    only_in 'jansson on the path of records' '#include <jansson\.h>' 'proxy/(admin[a-z_]*\.[ch]|explain\.[ch]|serve\.c|cli_[a-z_]*\.[ch])'
    only_in 'xxhash outside the identification and the sums of rows' '#include <xxhash\.h>' '(proxy/(identify[a-z_]*|acks|cli_version)|store/rows_lmdb)\.[ch]'
    only_in 'compression outside the codings' '#include <(zlib|zstd)\.h>' 'proxy/(coding|cli_version)\.c'
}

# A quoted include names a file of the same folder or of include/; headers of include/ name only each other.
check_directions() {
    local file name
    while IFS=: read -r file name; do
        name=$(sed -E 's/.*"([^"]*)".*/\1/' <<<"$name")
        [ -e "$root/include/$name" ] && continue
        case $file in
        include/*) breach "an interface that knows an inside: $file includes $name" ;;
        *) [ -e "$root/${file%/*}/$name" ] || breach "across folders: $file includes $name" ;;
        esac
    done < <(grep -E '^[^:]*:[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$work/code")
}

# A file that has a header of its name includes it first, so that the header is known to compile alone.
check_own_header_first() {
    local file name first
    for file in "$root"/proxy/*.c "$root"/store/*.c; do
        name=$(basename "$file" .c).h
        [ -e "${file%/*}/$name" ] || [ -e "$root/include/$name" ] || continue
        first=$(grep -m1 -E '^#include' "$file")
        [ "$first" = "#include \"$name\"" ] || breach "own header not first: ${file#"$root"/}"
    done
}

check_forbidden() {
    nowhere 'commits that are not durable' 'MDB_(NOSYNC|NOMETASYNC|WRITEMAP|MAPASYNC)'
    nowhere 'duplicate keys in LMDB' 'MDB_DUP(SORT|FIXED)'
    nowhere 'a nested transaction' 'mdb_txn_begin\([^,]*,[[:space:]]*(\(|[a-mo-zA-MO-Z_]|N[^U])'
    nowhere 'shared listening ports' 'SO_REUSEPORT'
    nowhere 'redirections followed' 'CURLOPT_FOLLOWLOCATION'
    only_in 'a body that can be rewound' 'CURLOPT_(SEEKFUNCTION|POSTFIELDS\b|COPYPOSTFIELDS|IOCTLFUNCTION)' 'proxy/cli_http\.c'
    nowhere 'fork or daemon' '\b(v?fork|daemon)[[:space:]]*\('
    nowhere 'a locale' '\bsetlocale[[:space:]]*\('
    nowhere 'a whole buffer copied' 'evbuffer_pullup\([^,]*,[[:space:]]*-1'
    nowhere 'evhttp' '\bevhttp_|event2/http'
    nowhere 'assertions switched off' '\bNDEBUG\b'
    only_in 'JSON trees on the path of records' '\bjson_(loadb?|dumps|pack|unpack)[[:space:]]*\(' 'proxy/(admin[a-z_]*|cli[a-z_]*|explain)\.c'
}

plain='__assert_fail mem[a-z]+ str[a-z]+ __popcount[a-z0-9]+ __stack_chk_fail _GLOBAL_OFFSET_TABLE_'
with_memory="$plain malloc calloc realloc free snprintf strdup strndup qsort vsnprintf XXH3_[A-Za-z0-9_]+ __sprintf_chk"
codec='proxy/http1.c proxy/http1_chunk.c proxy/http1_fields.c proxy/json_scan.c proxy/outcome.c proxy/finish.c
       proxy/identify_cut.c proxy/identify_find.c proxy/identify_header.c proxy/identify_json.c
       store/applied.c store/chunk.c store/format.c store/marks.c store/names.c'
packers="$with_memory inflate[A-Za-z0-9_]* deflate[A-Za-z0-9_]* ZSTD_[A-Za-z0-9_]+"
coding='proxy/coding.c'
core='proxy/bearer.c proxy/identify.c proxy/identify_array.c proxy/identify_bulk.c proxy/identify_gather.c proxy/identify_lines.c
      proxy/identify_mark.c proxy/identify_opaque.c proxy/identify_rules.c proxy/locator.c proxy/plan.c proxy/pass.c proxy/reply.c
      store/audit.c store/claims.c store/dump.c store/firsts.c store/forget.c store/line.c store/machine.c store/opens.c store/pairs.c
      store/partitions.c store/questions.c store/questions_records.c store/replays.c store/replies.c store/restore.c
      store/settle.c store/verify.c store/waiters.c'

# The objects of FILES need nothing but ALLOWED and our own functions, none of which stands outside the pure files.
check_symbols() {
    local what=$1 allowed=$2 file symbol
    for file in $3; do
        if [ ! -e "$root/$file" ]; then
            breach "$what: $file is not there; mend the list"
            continue
        fi
        while read -r symbol; do
            grep -qxE "$(tr -s ' \n' '|' <<<"$allowed" | sed 's/|$//')" <<<"$symbol" && continue
            grep -qxF "$symbol" "$work/own" || breach "$what: $file needs $symbol"
        done < <(nm -u "$work/$(tr / _ <<<"$file").o" | awk '{ print $2 }')
    done
}

# ROWS are the interface through which the pure machine asks for what is on disk.
compile_core() {
    local file
    for file in $codec $core $coding store/rows_lmdb.c; do
        [ -e "$root/$file" ] || continue
        "$CC" -std=c11 -D_GNU_SOURCE -O1 -I"$root/include" -I"$root/proxy" -I"$root/store" -c "$root/$file" \
            -o "$work/$(tr / _ <<<"$file").o" || breach "$file does not compile"
    done
    nm --defined-only "$work"/*.o | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u >"$work/own"
}

check() {
    root=$1
    if [[ $parts == *text* ]]; then
        code >"$work/code"
        [ -s "$work/code" ] || breach "no code was found in $root"
        check_includes
        check_directions
        check_own_header_first
        check_forbidden
    fi
    if [[ $parts == *symbols* ]]; then
        compile_core
        check_symbols 'the codec is not pure' "$plain" "$codec"
        check_symbols 'the core is not pure' "$with_memory" "$core"
        check_symbols 'the codings are not pure' "$packers" "$coding"
    fi
}

# FILE gets LINE at its end, in a copy of the tree; the check must find it.
planted=0
plant() {
    local file=$1 line=$2 copy="$work/copy"
    planted=$((planted + 1))
    rm -rf "$copy" && mkdir "$copy" && cp -r "$here/include" "$here/proxy" "$here/store" "$copy"
    printf '%s\n' "$line" >>"$copy/$file"
    if PARTS=${3:-text} "$0" "$copy" >/dev/null 2>&1; then
        breach "control: not noticed in $file: $line"
    fi
}

control() {
    "$0" "$here" || breach 'control: the tree itself is red'
    plant proxy/serve.c '#include <lmdb.h>'
    plant proxy/exchange.c '#include <curl/curl.h>'
    plant proxy/exchange.c '#include <event2/bufferevent.h>'
    plant proxy/conn.c '#include <openssl/ssl.h>'
    plant store/machine.c '#include <event2/event.h>'
    plant proxy/plan.c '#include <zlib.h>'
    plant proxy/identify.c '#include <jansson.h>'
    plant proxy/exchange.c '#include "machine.h"'
    plant store/store.c '#include "http1.h"'
    plant include/store.h '#include "conn.h"'
    plant store/env.c 'unsigned planted(void); unsigned planted(void) { return MDB_NOSYNC; }'
    plant store/env.c 'int planted(void *e, void *p, void **t); int planted(void *e, void *p, void **t) { return mdb_txn_begin(e, p, 0, t); }'
    plant proxy/listener.c 'int planted = SO_REUSEPORT;'
    plant proxy/serve.c 'void planted(void); void planted(void) { (void)fork(); }'
    plant proxy/conn.c 'void planted(void *b); void planted(void *b) { evbuffer_pullup(b, -1); }'
    plant proxy/upstream_request.c 'int planted = CURLOPT_SEEKFUNCTION;'
    plant proxy/http1.c 'long time(long *t); long planted(void); long planted(void) { return time(0); }' symbols
    plant proxy/http1.c '#include <stdlib.h>
void *planted(void); void *planted(void) { return malloc(1); }' symbols
    plant store/machine.c 'long time(long *t); long planted(void); long planted(void) { return time(0); }' symbols
    plant store/claims.c 'char *getenv(const char *n); char *planted(void); char *planted(void) { return getenv("X"); }' symbols
    sed -i 's/^#include "plan.h"$//' "$work/copy/proxy/plan.c" && PARTS=text "$0" "$work/copy" >/dev/null 2>&1 &&
        breach 'control: a header that is not first was not noticed'
    echo "layers: $planted breaches planted, $((planted - breaches)) found"
}

if [ "${1:-}" = --control ]; then
    control
else
    check "${1:-$here}"
    [ "$breaches" -gt 0 ] || echo 'layers: every rule holds'
fi
[ "$breaches" -eq 0 ]
