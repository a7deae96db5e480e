#!/bin/bash
# Runs the tests and ends with one line, `N passed, N failed, N skipped`.
#   test/run.sh [all|quick|skipped|unit|lit|oracle|replay] [PART]
# PART is a path below test/lit, or unit/NAME, oracle/NAME, replay/NAME: passes/quantize, unit/support.
# `quick` is a choice of two minutes, `skipped` what the last run skipped, of lit and oracle; neither takes a PART.
# Called by `make test`; the environment may set BUILD, CC, PYTHON, SANITIZE, ROUNDTRIP, QXC_SHARED.
# Tests find the program in QXC and large models in QXC_SHARED.
set -u
cd "$(dirname "$0")/.."
. test/venv.sh
. test/counts.sh

kind=${1:-all}
part=${2:-}
export BUILD=${BUILD:-build}
case $BUILD in
/*) export QXC=$BUILD/qxc ;;
*) export QXC=$PWD/$BUILD/qxc ;;
esac
export QXC_SHARED=${QXC_SHARED:-$(dirname "$PWD")/shared}
make=(${MAKE:-make} "BUILD=$BUILD" "CC=${CC:-cc}" "SANITIZE=${SANITIZE:-}" --no-print-directory)
[[ ${MAKEFLAGS:-} == *jobserver* ]] || make+=("-j$(getconf _NPROCESSORS_ONLN)")

# What a sanitizer finds ends the program by a signal, so that no test takes it for a refusal.
export ASAN_OPTIONS=abort_on_error=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}

if [[ $kind/$part == @(quick|skipped)/?* ]]; then
    check "make $kind takes no T: it is a choice of its own" false
    counts
    exit
fi
case $part in
unit/* | oracle/* | replay/*) kind=${part%%/*} part=${part#*/} ;;
lit/*) kind=lit part=${part#*/} ;;
?*) [ "$kind" = all ] && kind=lit ;;
esac
wanted() {
    case $kind in
    all | quick | "$1") ;;
    skipped) [ "$1" = lit ] || [ "$1" = oracle ] ;;
    *) false ;;
    esac
}
# What the runners of lit and oracle are told to run.
choice=$part
case $kind in quick | skipped) choice=--$kind ;; esac

mkdir -p "$BUILD"
if ! tools/install_deps.sh --if-possible; then
    check "dependencies" false
    counts
    exit
fi

case $kind in
all | quick) targets='all units replays tracer' ;;
lit | skipped) targets='all tracer' ;;
unit) targets=units ;;
replay) targets=replays ;;
*) targets=all ;;
esac
# shellcheck disable=SC2086 # one word per target
if ! "${make[@]}" $targets >"$BUILD/make.log" 2>&1; then
    cat "$BUILD/make.log"
    check "build" false
else
    wanted unit && counted unit test/unit/run.sh "$part"
    wanted replay && counted replay test/fuzz/replay.sh "$part"
    if wanted lit || wanted oracle; then
        if venv build/venv; then # one for all build folders
            wanted lit && counted lit build/venv/bin/python test/lit/run.py "$choice"
            wanted oracle && counted oracle build/venv/bin/python test/oracle/run.py "$choice"
        else
            check "virtual environment from test/requirements.txt" false
        fi
    fi
fi

if [ "$kind" = all ] || [ "$kind" = quick ]; then
    check "layers" tools/check_layers.sh
    check "symbols" tools/check_symbols.py "$BUILD"
    check "format" tools/format.sh --check
fi

if [ "$kind" != skipped ] && [ $((passed + failed)) = 0 ]; then
    echo "no test ran" >&2
    failed=1
fi
counts
