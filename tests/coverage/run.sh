#!/usr/bin/env bash
# Which lines and branches of the ledger and of the deciders do the tests reach?
#   tests/coverage/run.sh [--write] [BUILD]    BUILD is a folder, build/Coverage by default; --write: into README.md too
# Minutes: it builds everything without optimisation and runs the unit tests and the scenarios that split and cut.
set -euo pipefail
cd "$(dirname "$0")/../.."

write=""
[ "${1:-}" = --write ] && { write=--write; shift; }
build=${1:-build/Coverage}
command -v gcovr >/dev/null || { echo "SKIP: no gcovr here"; exit 77; }

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=--coverage >/dev/null
ninja -C "$build" -j"$(nproc)" >/dev/null
find "$build" -name '*.gcda' -delete
# What belongs to objects that are no longer made would contradict the rest.
ninja -C "$build" -t cleandead >/dev/null
find "$build" -name '*.gcno' | while read -r notes; do [ -e "${notes%.gcno}.o" ] || rm "$notes"; done
units='http1.*|json_.*|locator|coding|identify.*|plan|prober_.*|settings.*|outcome|(batch|bulk|dapr|splunk)_answer|memory|acks|text'
units="$units|chunk|format|line|applied|machine|dump|damage|planted|failing|forget|replays|resolve|company|queue|ledger.*|env|file_damage|pages|offline|store|contract_store|corpus_.*"
ctest --test-dir "$build" -j"$(nproc)" --output-on-failure -R "^($units)\$" | tail -n 3
ctest --test-dir "$build" -j"$(nproc)" --output-on-failure -R '^scenario_batch_(split|cutting|answers|overlaps)$' | tail -n 3
# Disks and allocations that fail.  Among what they break is the counting itself, so that red is no news here.
export SINKONCE_TORTURE_RUNS=${SINKONCE_TORTURE_RUNS:-1500}
failing='a_disk_that_fails.*|a_full_ledger.*|the_wrong_ledger.*|the_disk_is_waited_for|ops_.*|admin_.*|a_topic_created_again.*'
ctest --test-dir "$build" -j"$(nproc)" -R "^(torture|cli_commands|scenario_($failing))\$" | tail -n 3 || true

# Left out: assertions, which cannot fail, and what a compiler adds.
deciders='http1.*|json_scan|json_string|json_walk|identify.*|plan|outcome|split|batch_answer|bulk_answer|splunk_answer|dapr_answer'
deciders="$deciders|prober_judge|prober_template|settings.*|locator|coding"
gcovr -r . --object-directory "$build" -f store/ -f "proxy/($deciders)\\.c" -e store/failpoint.c \
    --exclude-lines-by-pattern '.*\bassert\(.*' --exclude-unreachable-branches --exclude-throw-branches \
    --gcov-ignore-parse-errors --json "$build/coverage.json" "$build" 2>"$build/gcovr.log"
python3 -B tests/coverage/report.py $write "$build/coverage.json"
