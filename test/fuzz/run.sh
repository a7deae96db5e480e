#!/bin/bash
# make fuzz: libFuzzer on the targets of this folder, one after the other.
#   test/fuzz/run.sh SECONDS
# TARGET=qir,onnx chooses targets; else all run. The environment may set MAKE, PYTHON, SEED (of the
# mutations; else another one each time). In build/fuzz: seeds/ is made here, corpus/ grows from run
# to run, found/ holds the inputs that broke something. Limits for one input: 10 seconds, 2 GB. Ends
# with a line `N passed, N failed, N skipped`, of targets.
set -u
cd "$(dirname "$0")/../.."
. test/venv.sh
. test/counts.sh

seconds=${1:-60}
build=build/fuzz
tools/install_deps.sh --if-possible fuzz || exit 1
venv build/venv || exit 1
"${MAKE:-make}" -j"$(nproc)" --no-print-directory BUILD=$build CC="${FUZZ_CC:-clang-19}" SANITIZE=fuzz \
    CFLAGS='-O1 -gline-tables-only' all fuzzers >$build.log 2>&1 || { tail -n 30 $build.log; exit 1; }
ASAN_OPTIONS=detect_leaks=0 build/venv/bin/python test/fuzz/seeds.py "$PWD/$build/qxc" $build/seeds ||
    exit 1

# Prints how a target did: the numbers that libFuzzer closes with.
report() { # name, log
    local runs cov
    runs=$(grep -ao 'stat::number_of_executed_units: *[0-9]*' "$2" | grep -o '[0-9]*$' | tail -n 1)
    cov=$(grep -ao 'cov: [0-9]* ft: [0-9]* corp: [0-9]*' "$2" | tail -n 1)
    echo "$1: ${runs:-?} runs, $cov"
}

# fuzz_command writes files, which stay when it breaks.
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
mkdir -p $build/found

# False where something was found.
fuzz() { # name
    local name=$1 log=$build/found/$1.log regress=test/fuzz/regress/$1
    mkdir -p "$build/corpus/$name"
    if nice -n 19 "$build/libfuzzer/fuzz_$name" "$PWD/$build/corpus/$name" "$build/seeds/$name" \
        $([ -d "$regress" ] && echo "$regress") -dict="$build/seeds/$name.dict" ${SEED:+-seed="$SEED"} </dev/null \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
        -artifact_prefix="$PWD/$build/found/$name-" -print_final_stats=1 >"$log" 2>&1; then
        report "$name" "$log"
        return
    fi
    grep -a -e '^broken promise' -e '^SUMMARY' -e 'Test unit written' "$log" >&2
    return 1
}

for source in test/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    name=${name#fuzz_}
    [[ -z ${TARGET:-} || ,$TARGET, == *",$name,"* ]] || continue
    check "fuzz_$name found something" fuzz "$name"
done
counts
