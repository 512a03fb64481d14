#!/usr/bin/env bash
# Measures sinkonce against nginx and HAProxy in one run, on loopback; about six minutes.
#   tests/bench/run.sh                 installs what is missing, builds Release, measures, prints the table
#   tests/bench/run.sh --rounds N      fewer or more than five rounds
# Bars are printed with "pass" or "miss"; the exit code says only whether it could be measured.
set -euo pipefail
cd "$(dirname "$0")/../.."

conf/packages.sh bench
mkdir -p build
cmake -S . -B build/Release -G Ninja -DCMAKE_BUILD_TYPE=Release >build/Release.configure.log 2>&1 ||
    { cat build/Release.configure.log; exit 1; }
ninja -C build/Release sinkonce target ledger_fill scan_bench >build/Release.build.log 2>&1 ||
    { tail -n 40 build/Release.build.log; exit 1; }

export SINKONCE_BIN=$PWD/build/Release/proxy/sinkonce
export TARGET_BIN=$PWD/build/Release/tests/support/target
export LEDGER_FILL_BIN=$PWD/build/Release/tests/bench/ledger_fill
python3 -B tests/bench/bench.py "$@"
python3 -B tests/bench/batch.py "$@"
python3 -B tests/bench/admin.py "$@"
echo
exec build/Release/tests/bench/scan_bench
