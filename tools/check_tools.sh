#!/bin/bash
# What another compiler and its sanitizers find, in little time. One build serves it all: clang, with AddressSanitizer,
# UBSan and libFuzzer. Its program emits the same bytes of forty models (test/oracle/forty.txt); its replays read what
# was once found; each fuzz target looks for five seconds. Ends with one line, `N passed, N failed, N skipped`. Called
# by `make check-tools`; the environment may set BUILD and FUZZ_CC.
set -u
cd "$(dirname "$0")/.."
. test/venv.sh
. test/counts.sh
export BUILD=${BUILD:-build}
make=(${MAKE:-make} --no-print-directory)
[[ ${MAKEFLAGS:-} == *jobserver* ]] || make+=("-j$(getconf _NPROCESSORS_ONLN)")
# What a sanitizer finds ends the program by a signal, so that nobody takes it for a refusal.
export ASAN_OPTIONS=abort_on_error=1:detect_leaks=0 UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1

check "build" "${make[@]}" BUILD="$BUILD" CC="${CC:-cc}" all
check "build for fuzzing" "${make[@]}" BUILD=build/fuzz CC="${FUZZ_CC:-clang-19}" SANITIZE=fuzz CFLAGS='-O1 -gline-tables-only' \
    all replays fuzzers
if venv build/venv; then
    counted forty build/venv/bin/python test/oracle/forty.py "$BUILD/qxc" build/fuzz/qxc
else
    check "virtual environment from test/requirements.txt" false
fi
counted replay env BUILD=build/fuzz test/fuzz/replay.sh
# A seed, so that what is found once is found again.
counted fuzz env SEED=1 test/fuzz/run.sh 5
counts
