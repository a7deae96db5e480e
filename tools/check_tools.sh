#!/bin/bash
# What another compiler finds, in little time: clang builds qxc and the replays of the fuzzers, and its program emits the
# same bytes of forty models (test/oracle/forty.txt). Ends with one line, `N passed, N failed, N skipped`. Called by
# `make check-tools`; the environment may set BUILD and CLANG.
set -u -o pipefail
cd "$(dirname "$0")/.."
. test/venv.sh
build=${BUILD:-build}
clang=${CLANG:-clang-19}
make=(${MAKE:-make} --no-print-directory)
[[ ${MAKEFLAGS:-} == *jobserver* ]] || make+=("-j$(getconf _NPROCESSORS_ONLN)")
passed=0 failed=0 skipped=0

check() { # name, command
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        echo "FAIL: $name" >&2
        failed=$((failed + 1))
    fi
}

counted() { # a command whose last line counts
    local log="$build/check-tools.log" last
    "$@" | tee "$log" | sed '$d'
    last=$(tail -n 1 "$log")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
    else
        echo "FAIL: '$*' did not run to its end" >&2
        failed=$((failed + 1))
    fi
}

mkdir -p "$build"
check "build" "${make[@]}" BUILD="$build" CC="${CC:-cc}" all
check "build with $clang" "${make[@]}" BUILD=build/clang CFLAGS=-O1 CC="$clang" all replays
if venv build/venv; then
    counted build/venv/bin/python test/oracle/forty.py "$build/qxc" build/clang/qxc
else
    check "virtual environment from test/requirements.txt" false
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
