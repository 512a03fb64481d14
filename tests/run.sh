#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.
#   tests/run.sh             everything: the suite, the end-to-end runs, the image; the suite again under ASan and TSan
#   tests/run.sh --quick     the suite of one build
#   tests/run.sh -- ARGS     everything, with ARGS for the ctest of the Release build
# The last line counts all tests of all builds.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=full
case "${1:-}" in
--quick) mode=quick; shift ;;
--) shift ;;
esac
jobs=$(nproc)
slots=$((4 * jobs)) # tests/CMakeLists.txt says what they are
passed=0 failed=0 skipped=0 runs=0

say() { printf '\n== %s\n' "$*"; }

# build TYPE [CMake arguments]: configures and builds build/TYPE
build() {
    local type=$1; shift
    say "building $type"
    cmake -S . -B "build/$type" -G Ninja -DCMAKE_BUILD_TYPE="$type" -DSINKONCE_TESTS=ON "$@" >"build/$type.configure.log" 2>&1 ||
        { cat "build/$type.configure.log"; return 1; }
    ninja -C "build/$type" -j"$jobs" >"build/$type.build.log" 2>&1 || { grep -E -A3 'error:|FAILED' "build/$type.build.log" | head -n 40; return 1; }
}

# count LOG: adds ctest's own figures to the totals
count() {
    local tests bad skips
    tests=$(sed -n 's/.*tests passed.* out of \([0-9]*\)$/\1/p' "$1" | tail -n 1)
    bad=$(sed -n 's/.*, \([0-9]*\) tests failed out of .*/\1/p' "$1" | tail -n 1)
    skips=$(grep -c '\*\*\*Skipped' "$1" || true)
    [ -n "$tests" ] || { failed=$((failed + 1)); return; }
    passed=$((passed + tests - bad - skips)); failed=$((failed + bad)); skipped=$((skipped + skips))
}

# suite TYPE [ctest arguments]
suite() {
    local type=$1 log; shift
    log="build/$type.$((++runs)).test.log"
    say "testing $type"
    ctest --test-dir "build/$type" --output-on-failure -j "$slots" "$@" 2>&1 | tee "$log" || true
    count "$log"
}

conf/packages.sh test
mkdir -p build
rm -f build/*.test.log # of an earlier run
build Release
if [ "$mode" = quick ]; then
    suite Release -LE 'e2e|image|page' "$@"
else
    # The other two builds take what the tests of the first leave of the machine.
    (renice -n 10 "$BASHPID" && build Asan && build Tsan) >build/sanitizers.log 2>&1 &
    sanitizers=$!
    suite Release "$@"
    if wait "$sanitizers"; then
        export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=0:exitcode=66
        suite Asan -LE 'e2e|image|page|plain'
        suite Tsan -LE 'e2e|image|page|plain|onethread'
    else
        cat build/sanitizers.log
        failed=$((failed + 1))
    fi
fi

say "skipped tests and why"
grep -h -A3 'SKIP' build/*.test.log 2>/dev/null | grep -i 'skip' | sort -u | head -n 20 || true
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
