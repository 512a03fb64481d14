#!/bin/bash
# Checks what the linker does not: who may include what, what the pure core may call, and what nobody may.
#
#   layers.sh [ROOT]     exit 0 when every rule holds; else one line per breach
#   layers.sh --control  plants breaches of the rules in a copy and demands that these and no others are found
#
# Directions: proxy -> include <- store.  One door to each library.  Deciders have no clock, socket, file or thread.
set -u
CC=${CC:-gcc}
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
breaches=0

breach() { echo "layers: $*"; breaches=$((breaches + 1)); }

# Code without comments, without what only a negative control switches on, and without refusals of NDEBUG; each line as
# FILE:TEXT.
code() {
    (cd "$root" && perl -0777 -ne '
        s{/\*.*?\*/}{ }gs;
        s{^#ifdef BREAK_.*?^#(?:else|endif)[^\n]*}{}gsm;
        s{^#ifdef NDEBUG\n#error [^\n]*\n#endif\n}{}gm;
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
    only_in 'bufferevents outside connections' '#include <event2/(bufferevent|buffer)' 'proxy/conn(_read|_write)?\.c'
    only_in 'OpenSSL outside the TLS files' '#include <openssl/' 'proxy/(tls[a-z_]*|cli_version)\.[ch]'
    only_in 'libevent outside the loops' '#include <event2/' \
        'proxy/(conn|conn_read|conn_write|listener|loop|loop_library|serve|prober|upstream[a-z_]*|admin_health|cli_version)\.[ch]'
    only_in 'jansson on the path of records' '#include <jansson\.h>' 'proxy/(admin[a-z_]*\.[ch]|explain\.[ch]|serve\.c|cli_[a-z_]*\.[ch])'
    only_in 'xxhash outside the identification and the sums of rows' '#include <xxhash\.h>' '(proxy/(identify[a-z_]*|acks|cli_version)|store/rows_lmdb)\.[ch]'
    only_in 'compression outside the codings' '#include <(zlib|zstd)\.h>' 'proxy/(coding|cli_version)\.c'
}

# A quoted include names a file of the same folder or of include/; headers of include/ name only each other.
check_directions() {
    local file name
    while IFS=: read -r file name; do
        name=${name#*\"} name=${name%%\"*}
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
    while IFS=: read -r file first; do
        name=${file##*/} name=${name%.c}.h
        [ -e "$root/${file%/*}/$name" ] || [ -e "$root/include/$name" ] || continue
        [ "$first" = "#include \"$name\"" ] || breach "own header not first: $file"
    done < <(cd "$root" && grep -H -m1 -E '^#include' proxy/*.c store/*.c)
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
codec='proxy/http1.c proxy/http1_chunk.c proxy/http1_fields.c proxy/json_scan.c proxy/json_string.c proxy/outcome.c proxy/finish.c
       proxy/identify_cut.c proxy/identify_find.c proxy/identify_header.c proxy/identify_json.c
       store/applied.c store/chunk.c store/format.c store/marks.c store/names.c'
packers="$with_memory inflate[A-Za-z0-9_]* deflate[A-Za-z0-9_]* ZSTD_[A-Za-z0-9_]+"
coding='proxy/coding.c'
core='proxy/bearer.c proxy/identify.c proxy/identify_array.c proxy/identify_bulk.c proxy/identify_gather.c proxy/identify_lines.c
      proxy/identify_mark.c proxy/identify_opaque.c proxy/identify_rules.c proxy/locator.c proxy/plan.c proxy/pass.c proxy/reply.c
      store/audit.c store/claims.c store/company.c store/dump.c store/firsts.c store/forget.c store/line.c store/machine.c store/opens.c store/pairs.c
      store/partitions.c store/questions.c store/questions_records.c store/replays.c store/replies.c store/resolve.c store/restore.c
      store/settle.c store/steps.c store/verify.c store/waiters.c'

object_of() { echo "$work/${1//\//_}.o"; }

# The objects of FILES need nothing but ALLOWED and our own functions, none of which stands outside the pure files.
check_symbols() {
    local what=$1 allowed=$2 file
    for file in $3; do
        if [ ! -e "$root/$file" ]; then
            breach "$what: $file is not there; mend the list"
            continue
        fi
        while read -r symbol; do
            breach "$what: $file needs $symbol"
        done < <(nm -u "$(object_of "$file")" | awk '{ print $2 }' | grep -vxF -f "$work/own" |
            grep -vxE "${allowed// /|}")
    done
}

# ROWS are the interface through which the pure machine asks for what is on disk.
compile_core() {
    local file
    rm -f "$work"/*.o
    for file in $codec $core $coding store/rows_lmdb.c; do
        [ -e "$root/$file" ] || continue
        "$CC" -std=c11 -D_GNU_SOURCE -O1 -I"$root/include" -I"$root/proxy" -I"$root/store" -c "$root/$file" \
            -o "$(object_of "$file")" || breach "$file does not compile"
    done
    nm --defined-only "$work"/*.o | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u >"$work/own"
}

check() {
    root=$1
    code >"$work/code"
    [ -s "$work/code" ] || breach "no code was found in $root"
    check_includes
    check_directions
    check_own_header_first
    check_forbidden
    compile_core
    check_symbols 'the codec is not pure' "$plain" "$codec"
    check_symbols 'the core is not pure' "$with_memory" "$core"
    check_symbols 'the codings are not pure' "$packers" "$coding"
}

# FILE of the copy gets LINE at its end; the check must say WHAT of that file.
plant() {
    local what=$1 file=$2 line=$3
    printf '%s\n' "$line" >>"$work/copy/$file"
    printf 'layers: %s\n' "$what" >>"$work/wanted"
}

# The same for a rule about text, which is quoted with the breach.
plant_text() {
    plant "$1: $2:$3" "$2" "$3"
}

control() {
    mkdir "$work/copy" && cp -r "$here/include" "$here/proxy" "$here/store" "$work/copy"
    plant_text 'lmdb outside the ledger' proxy/serve.c '#include <lmdb.h>'
    plant_text 'curl outside the target client' proxy/exchange.c '#include <curl/curl.h>'
    plant_text 'bufferevents outside connections' proxy/prober.c '#include <event2/bufferevent.h>'
    plant_text 'OpenSSL outside the TLS files' proxy/conn.c '#include <openssl/ssl.h>'
    plant_text 'libevent outside the loops' store/machine.c '#include <event2/event.h>'
    plant_text 'compression outside the codings' proxy/plan.c '#include <zlib.h>'
    plant_text 'jansson on the path of records' proxy/identify.c '#include <jansson.h>'
    plant_text 'xxhash outside the identification and the sums of rows' proxy/exchange.c '#include <xxhash.h>'
    plant 'across folders: proxy/exchange.c includes machine.h' proxy/exchange.c '#include "machine.h"'
    plant 'across folders: store/store.c includes http1.h' store/store.c '#include "http1.h"'
    plant 'an interface that knows an inside: include/store.h includes conn.h' include/store.h '#include "conn.h"'
    plant_text 'commits that are not durable' store/env.c 'int planted_nosync = MDB_NOSYNC;'
    plant_text 'duplicate keys in LMDB' store/env.c 'int planted_dup = MDB_DUPSORT;'
    plant_text 'a nested transaction' store/env.c \
        'int planted_txn(void *e, void *p, void **t); int planted_txn(void *e, void *p, void **t) { return mdb_txn_begin(e, p, 0, t); }'
    plant_text 'shared listening ports' proxy/listener.c 'int planted_port = SO_REUSEPORT;'
    plant_text 'redirections followed' proxy/upstream_request.c 'int planted_follow = CURLOPT_FOLLOWLOCATION;'
    plant_text 'a body that can be rewound' proxy/upstream_request.c 'int planted_seek = CURLOPT_SEEKFUNCTION;'
    plant_text 'fork or daemon' proxy/serve.c 'void planted_fork(void); void planted_fork(void) { (void)fork(); }'
    plant_text 'a locale' proxy/serve.c 'void planted_locale(void); void planted_locale(void) { setlocale(0, ""); }'
    plant_text 'a whole buffer copied' proxy/conn.c \
        'void planted_copy(void *b); void planted_copy(void *b) { evbuffer_pullup(b, -1); }'
    plant_text 'evhttp' proxy/serve.c 'int planted_evhttp = (int)evhttp_new;'
    plant_text 'assertions switched off' proxy/serve.c '#define NDEBUG'
    plant_text 'JSON trees on the path of records' proxy/exchange.c 'char *planted_tree = json_dumps(0, 0);'
    plant 'the codec is not pure: proxy/http1.c needs time' proxy/http1.c \
        'long time(long *t); long planted_time(void); long planted_time(void) { return time(0); }'
    plant 'the codec is not pure: proxy/http1.c needs malloc' proxy/http1.c '#include <stdlib.h>
void *planted_memory(void); void *planted_memory(void) { return malloc(1); }'
    plant 'the core is not pure: store/machine.c needs time' store/machine.c \
        'long time(long *t); long planted_time(void); long planted_time(void) { return time(0); }'
    plant 'the core is not pure: store/claims.c needs getenv' store/claims.c \
        'char *getenv(const char *n); char *planted_env(void); char *planted_env(void) { return getenv("X"); }'
    plant 'the codings are not pure: proxy/coding.c needs getenv' proxy/coding.c \
        'char *getenv(const char *n); char *planted_name(void); char *planted_name(void) { return getenv("X"); }'
    sed -i '1i #include <stdio.h>' "$work/copy/proxy/listener.c"
    echo 'layers: own header not first: proxy/listener.c' >>"$work/wanted"

    "$0" "$work/copy" >"$work/found"
    diff <(sort "$work/wanted") <(sort "$work/found") || breach 'control: < was planted and not found, > found and not planted'
    echo "layers: $(wc -l <"$work/wanted") breaches planted"
}

if [ "${1:-}" = --control ]; then
    control
else
    check "${1:-$here}"
    [ "$breaches" -gt 0 ] || echo 'layers: every rule holds'
fi
[ "$breaches" -eq 0 ]
