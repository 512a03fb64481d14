#!/bin/sh
# cli.sh - the commands of the program from outside: output, errors, exit codes.
# usage: cli.sh PROGRAM
set -u
program=$1
work=$(mktemp -d /tmp/sinkonce-cli-XXXXXX)
failures=0
pids=
finish() {
    for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT

# run VARIABLE... -- ARGUMENT...: the program in an empty environment; out, err and code hold what came.
run() {
    variables=
    while [ "$1" != -- ]; do variables="$variables $1"; shift; done
    shift
    # shellcheck disable=SC2086  # no value here has a space
    env -i $variables "$program" "$@" >"$work/out" 2>"$work/err"
    code=$?
}

fail() {
    failures=$((failures + 1))
    echo "not ok: $name: $1"
    sed 's/^/  stdout: /' "$work/out" | head -5
    sed 's/^/  stderr: /' "$work/err" | head -5
}
want_code() { [ "$code" -eq "$1" ] || fail "exit code $code, not $1"; }
want() { grep -q -- "$2" "$work/$1" || fail "\"$2\" is not on std$1"; }
want_lines() { [ "$(wc -l <"$work/$1")" -eq "$2" ] || fail "not $2 lines on std$1"; }
want_nothing() { [ ! -s "$work/$1" ] || fail "something is on std$1"; }

# wait_until COMMAND...: at most 10 s, for what another process does; it is never what a test measures.
wait_until() {
    for _ in $(seq 100); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    fail "never came true: $*"
}

target=SINKONCE_TARGET=http://127.0.0.1:9
mkdir "$work/data"
data="SINKONCE_DATA_DIR=$work/data SINKONCE_LEDGER_MAX=64MiB" # so small that no disk is too full for it

name="help names the commands and every setting"
run -- --help
want_code 0; want_nothing err
for word in serve check config health --version SINKONCE_TARGET 'SINKONCE_ADMIN_TOKEN\[_FILE\]' 'default: 127.0.0.1:8650' 78; do
    want out "$word"
done

name="version names the program and its libraries"
run -- --version
want_code 0; want_nothing err
want out '^sinkonce [0-9]*\.[0-9]*\.[0-9]*$'; want out '^libevent 2'; want out '^libcurl [78]'; want out '^jansson 2'

name="I-08 version --verbose names each library as it runs and as it was built with"
for spelling in '--version --verbose' '-V -v' 'version --verbose'; do
    run -- $spelling
    want_code 0; want_nothing err
    for library in libevent OpenSSL libcurl jansson LMDB xxHash zlib zstd glibc; do
        want out "^$library [0-9][0-9a-z.-]* (built with [0-9][0-9a-z.-]*)\$"
    done
done

name="an unknown command is refused with a suggestion"
run -- chekc
want_code 2; want_nothing out; want err 'did you mean check?'
run -- --verison
want_code 2; want err 'did you mean --version?'
run -- teleport
want_code 2; want err 'sinkonce --help'

name="an argument that is not understood is refused"
for arguments in 'serve now' 'check --conect' 'config prnt' 'config env more' 'health --dead' '--version x'; do
    # shellcheck disable=SC2086
    run "$target" -- $arguments
    want_code 2; want_nothing out; want err "is not understood\|is not a command"
done

name="config env and docs need no settings"
run SINKONCE_NONSENSE=1 -- config env
want_code 0; want_nothing err; want out '^#SINKONCE_LISTEN=127.0.0.1:8650$'
run -- config docs
want_code 0; want_nothing err; want out '^| `SINKONCE_LISTEN` | `127.0.0.1:8650` |'

name="config print shows values, sources and no secret"
run "$target" SINKONCE_AUTHORIZATION=s3cret -- config
want_code 0; want_nothing err
want out '^SINKONCE_AUTHORIZATION=\*\*\*  # environment$'; want out '^SINKONCE_WAIT=2s  # default$'
grep -q s3cret "$work/out" && fail "the secret is shown"

name="three mistakes give three lines and 78, for every command that needs settings"
for arguments in serve check config; do
    run SINKONCE_WAIT=7 SINKONCE_MODE=on SINKONCE_LISTN=x "$target" "$data" -- $arguments
    want_code 78; want_lines err 3
    want err 'SINKONCE_WAIT needs a unit: ms, s, m, h or d'; want err 'did you mean SINKONCE_LISTEN?'
done
run SINKONCE_WAIT=7 SINKONCE_MODE=on SINKONCE_LISTN=x "$target" "$data" --  config print
want_nothing out

name="output that cannot be written is an error"
if [ -c /dev/full ]; then
    env -i "$program" config env >/dev/full 2>"$work/err"
    code=$?
    want_code 74; want err 'stdout cannot be written'
fi
env -i "$program" config env >&- 2>"$work/err"
code=$?
want_code 74; want err 'stdout cannot be written: Bad file descriptor'

name="check is content with a good folder and leaves it as it was"
run "$target" "$data" -- check
want_code 0; want out '^settings: ok$'; want out 'can be used$'
[ -z "$(ls -A "$work/data")" ] || fail "something was left in the data folder"

name="check tells what is wrong with the data folder"
run "$target" SINKONCE_DATA_DIR="$work/none/data" -- check
want_code 74; want err 'does not exist; make it'
run "$target" SINKONCE_DATA_DIR="$work/none" SINKONCE_LEDGER_MISSING=refuse -- check
want_code 74; want err 'does not exist and SINKONCE_LEDGER_MISSING=refuse'
: >"$work/file"
run "$target" SINKONCE_DATA_DIR="$work/file" -- check
want_code 74; want err 'is not a folder'
run "$target" "$data" SINKONCE_LEDGER_MISSING=refuse -- check
want_code 74; want err 'has no ledger'
if [ -d /proc/self ]; then
    run "$target" SINKONCE_DATA_DIR=/proc/self -- check # nobody can make files there, not even root
    want_code 74; want err 'cannot be written to'
    run "$target" SINKONCE_DATA_DIR=/proc/self/none -- check
    want_code 74; want err 'does not exist; make it'
fi

name="check notes a data folder that serve will make, and leaves that to it"
for folder in "$work/none" "$work/none/"; do
    run "$target" SINKONCE_DATA_DIR="$folder" -- check
    want_code 0; want err "^note: SINKONCE_DATA_DIR=$folder does not exist yet: serve makes it\$"; want out 'can be used$'
done
[ ! -e "$work/none" ] || fail "the folder was made"
[ -z "$(find "$work" -name '.check-*')" ] || fail "something was left around the data folder"

name="check tells of wrong settings and of the folder in one run"
run "$target" SINKONCE_WAIT=7 SINKONCE_DATA_DIR="$work/none" -- check
want_code 78; want err 'SINKONCE_WAIT needs a unit'; want err 'does not exist'

name="check --connect reaches the target, or says that it cannot"
run "$target" "$data" -- check --connect
want_code 69; want err '127.0.0.1 port 9 cannot be reached'
run "$target" "$data" SINKONCE_TARGET_PROXY=http://127.0.0.1:9 -- check --connect
want_code 69; want err 'the proxy 127.0.0.1 port 9'

python3 - "$work/port" <<'PY' &
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
PY
pids="$pids $!"
wait_until test -s "$work/port"
port=$(cat "$work/port")
run SINKONCE_TARGET=http://127.0.0.1:"$port" "$data" -- check --connect
want_code 0; want out "^target: 127.0.0.1 port $port accepts connections$"; want_nothing err
run "$target" "$data" SINKONCE_TARGET_PROXY=http://127.0.0.1:"$port" -- check --connect
want_code 0; want out "^proxy: 127.0.0.1 port $port accepts connections$"

name="health says that nobody is there, with or without a target"
run SINKONCE_ADMIN_LISTEN=127.0.0.1:9 -- health
want_code 1; want_nothing out; want err 'cannot be asked'
run SINKONCE_ADMIN_LISTEN=unix:"$work/none.sock" -- health --live
want_code 1; want err 'cannot be asked'
run SINKONCE_ADMIN_LISTEN=nonsense -- health
want_code 1; want err 'SINKONCE_ADMIN_LISTEN needs a port'
run SINKONCE_ADMIN_LISTEN=127.0.0.1:0 -- health
want_code 1; want err 'port 0'

name="health believes a 200 and nothing else"
for row in '0 HTTP/1.1 200 OK' '1 HTTP/1.1 503 Service Unavailable' '1 HTTP/1.1 2000 X' '1 220 smtp'; do
    rm -f "$work/h.sock"
    python3 - "$work/h.sock" "${row#* }" >"$work/asked" <<'PY' &
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1] + ".new")
server.listen(1)
os.rename(sys.argv[1] + ".new", sys.argv[1])
peer, _ = server.accept()
print(peer.recv(4096).decode().splitlines()[0], flush=True)
peer.sendall((sys.argv[2] + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").encode())
PY
    pid=$!
    pids="$pids $pid"
    wait_until test -S "$work/h.sock"
    run SINKONCE_ADMIN_LISTEN=unix:"$work/h.sock" -- health --live
    wait "$pid"
    want_code "${row%% *}"
    grep -q '^GET /livez HTTP/1.1$' "$work/asked" || fail "it did not ask for /livez"
done

# ---- beside a running instance ------------------------------------------------------------------------------------

listen=SINKONCE_LISTEN=unix:$work/l.sock
admin=SINKONCE_ADMIN_LISTEN=unix:$work/a.sock
# shellcheck disable=SC2086
env -i "$target" $data "$listen" "$admin" "$program" 2>"$work/log" &
server=$!
pids="$pids $server"

name="health finds a running instance live and ready"
wait_until env -i "$admin" "$program" health
run "$admin" -- health
want_code 0; want out '^ok$'; want_nothing err
run "$admin" -- health --live
want_code 0

name="check and a second serve see the lock of a running instance and do not harm it"
run "$target" "$data" -- check
want_code 75; want err 'another sinkonce runs there'
run "$target" "$data" SINKONCE_LISTEN=unix:"$work/m.sock" SINKONCE_ADMIN_LISTEN=unix:"$work/b.sock" -- serve
want_code 75
run "$admin" -- health
want_code 0

name="a running instance ends on SIGTERM with 0"
kill -TERM "$server"
wait "$server"
code=$?
cp "$work/log" "$work/err"
want_code 0

name="check tells that serve would not take the ledger that is there"
run "$target" "$data" -- check
want_code 0; want out 'can be used$'; want_nothing err
run "$target" "$data" SINKONCE_SCOPE=other -- check
want_code 74; want err 'cannot be served: the ledger belongs to the scope "default"'
printf 'no ledger' >"$work/data/ledger.mdb"
run "$target" "$data" -- check
want_code 74; want err 'is no ledger of sinkonce, or damaged'

[ "$failures" -eq 0 ] && echo "ok"
exit "$((failures > 0))"
