#!/usr/bin/env bash
# The main job before your eyes, in about two minutes on a fresh machine and without Kafka:
# a client that sends every record again and again, a target that books each delivery, and sinkonce between them.
#   conf/quickstart.sh            embedded ledger, sample target
#   conf/quickstart.sh --kafka    the same with a real Kafka broker and a real Connect worker (needs Java and Maven)
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --kafka ]; then
    conf/packages.sh test
    cmake -S . -B build/Release -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
    ninja -C build/Release sinkonce target | tail -n 1
    exec python3 -B tests/e2e/run.py --bin build/Release/proxy/sinkonce --target build/Release/tests/support/target --work build/e2e
fi

records=200
work=$(mktemp -d)
target_pid="" proxy_pid=""

finish() {
    [ -n "$proxy_pid" ] && kill "$proxy_pid" 2>/dev/null
    [ -n "$target_pid" ] && kill "$target_pid" 2>/dev/null
    rm -rf "$work"
    return 0
}
trap finish EXIT

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() { echo "quickstart failed: $*" >&2; tail -n 5 "$work"/*.log >&2 || true; exit 1; }

# until COMMAND ...: asks ten times a second, at most ten seconds
until_true() {
    for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
    fail "waited in vain for: $*"
}

build() {
    step "1. Build"
    conf/packages.sh demo
    cmake -S . -B build/quickstart -G Ninja -DCMAKE_BUILD_TYPE=Release -DSINKONCE_TESTS=OFF -DSINKONCE_SAMPLES=ON >/dev/null
    ninja -C build/quickstart sinkonce target | tail -n 1
    sinkonce=build/quickstart/proxy/sinkonce
    target=$(find build/quickstart -type f -name target -perm -u+x | head -n 1)
}

start_target() {
    "$target" --port 0 --control-port 0 --journal "$work/journal" >"$work/target.out" 2>"$work/target.log" &
    target_pid=$!
    disown "$target_pid"
    until_true grep -q control= "$work/target.out"
    target_port=$(sed -n 's/^port=\([0-9]*\) .*/\1/p' "$work/target.out")
    control_port=$(sed -n 's/.*control=\([0-9]*\).*/\1/p' "$work/target.out")
}

# The first start takes any free ports; a restart takes the same ones again.
proxy_port=0 admin_port=0
start_proxy() {
    SINKONCE_TARGET="http://127.0.0.1:$target_port" SINKONCE_DATA_DIR="$work/ledger" SINKONCE_LOG_FORMAT=json \
        SINKONCE_LISTEN="127.0.0.1:$proxy_port" SINKONCE_ADMIN_LISTEN="127.0.0.1:$admin_port" \
        "$sinkonce" 2>"$work/sinkonce.log" &
    proxy_pid=$!
    disown "$proxy_pid"
    until_true grep -q server.ready "$work/sinkonce.log"
    local ready
    ready=$(grep server.ready "$work/sinkonce.log" | tail -n 1)
    proxy_port=$(sed -n 's/.*"listen":"127.0.0.1:\([0-9]*\)".*/\1/p' <<<"$ready")
    admin_port=$(sed -n 's/.*"admin":"127.0.0.1:\([0-9]*\)".*/\1/p' <<<"$ready")
}

# send PORT FROM TO: records as Kafka's InsertField transform would write them, over one kept connection;
# prints how many were answered with success
send() {
    local port=$1 from=$2 to=$3 offset requests
    requests=$(mktemp -p "$work")
    for offset in $(seq "$from" "$to"); do
        [ "$offset" -eq "$from" ] || echo next
        printf 'url = "http://127.0.0.1:%s/orders"\nsilent\noutput = /dev/null\nwrite-out = "%%{http_code}\\n"\n' "$port"
        printf 'header = "Content-Type: application/json"\n'
        printf 'data = "{\\"amount\\":%d,\\"__topic\\":\\"orders\\",\\"__partition\\":0,\\"__offset\\":%d}"\n' "$((offset * 7))" "$offset"
    done >"$requests"
    curl -K "$requests" 2>/dev/null | grep -c '^2' || true
}

applied() { wc -l <"$work/journal" 2>/dev/null || echo 0; }
booked() { curl -s "http://127.0.0.1:$control_port/reset" >/dev/null; : >"$work/journal"; }

build
step "2. Without sinkonce: $records records, each delivered three times"
start_target
for _ in 1 2 3; do send "$target_port" 1 "$records" >/dev/null; done
without=$(applied)
echo "   the target booked $without times for $records records"

step "3. With sinkonce: the same three deliveries, and a SIGKILL in the middle of the first"
booked
start_proxy
curl -s "http://127.0.0.1:$control_port/set?skip=$((records / 2))&delay=200" >/dev/null # the target gets slow half way
send "$proxy_port" 1 "$records" >"$work/first" &
sender=$!
reached() { [ "$(applied)" -gt $((records / 2 + 2)) ]; }
until_true reached
kill -KILL "$proxy_pid" # one record is at the target now, booked, and its answer has no reader any more
wait "$sender" || true
curl -s "http://127.0.0.1:$control_port/clear" >/dev/null
start_proxy
first=$(cat "$work/first")
second=$(send "$proxy_port" 1 "$records")
echo "   first delivery:  $first answered with success, then sinkonce was killed and started again"
echo "   second delivery: $second answered with success, $((records - second)) held with 503"

step "4. What nobody can know is kept and shown, not guessed"
echo "   GET /in-doubt of the admin port:"
curl -s "http://127.0.0.1:$admin_port/in-doubt" | sed 's/^/   /'
echo
offset=$(curl -s "http://127.0.0.1:$admin_port/in-doubt" | sed -n 's/.*"first":\([0-9]*\).*/\1/p')
[ -n "$offset" ] || fail "no record is in doubt"
grep -q "^orders/0/$offset	" "$work/journal" && resolution=applied || resolution=not-applied
echo "   the operator looks into the target's books (offset $offset: $resolution) and says so:"
curl -s -X POST -H 'Content-Type: application/json' "http://127.0.0.1:$admin_port/in-doubt" \
    -d "{\"topic\":\"orders\",\"partition\":0,\"from\":$offset,\"to\":$offset,\"resolution\":\"$resolution\",\"expect_count\":1,\"reason\":\"seen in the books\"}" | sed 's/^/   /'
echo
third=$(send "$proxy_port" 1 "$records")
with=$(applied)
echo "   third delivery:  $third answered with success"

step "What you have seen"
printf '   %-34s %8s\n' "records, each delivered three times" "$records" "booked without sinkonce" "$without" \
    "booked with sinkonce, and a kill" "$with" "in doubt, listed and resolved" "$((records - second))"
[ "$without" -eq $((3 * records)) ] || fail "the control run should have booked $((3 * records))"
[ "$with" -eq "$records" ] || fail "expected $records bookings with sinkonce"
[ "$third" -eq "$records" ] && [ "$second" -eq $((records - 1)) ] || fail "not every delivery was answered as it should be"
cat <<'TXT'

Where to look next
   README.md                     what is promised, what is not, every setting
   conf/quickstart.sh --kafka    the same with a real Kafka broker and a real Connect worker
   build/quickstart/proxy/sinkonce --help
TXT
