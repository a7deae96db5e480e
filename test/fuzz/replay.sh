#!/bin/bash
# Runs each fuzz target over what was once found (regress/NAME/) and over the texts of test/lit, with
# the compiler of the tests. $1: only targets whose name contains it. The last line counts inputs.
set -u
passed=0 failed=0

replay() { # program, file
    if timeout 20 "$1" "$2" >"$BUILD/replay.log" 2>&1 </dev/null; then
        passed=$((passed + 1))
    else
        tail -n 40 "$BUILD/replay.log"
        echo "FAIL: $(basename "$1") $2"
        failed=$((failed + 1))
    fi
}

for source in test/fuzz/fuzz_*"${1-}"*.c; do
    [ -e "$source" ] || continue
    program=$BUILD/replay/$(basename "$source" .c)
    name=$(basename "$source" .c)
    for input in test/fuzz/regress/"${name#fuzz_}"/*; do
        [ -e "$input" ] && replay "$program" "$input"
    done
    if [ "$name" = fuzz_qir ]; then
        while read -r input; do
            replay "$program" "$input"
        done < <(find test/lit -name '*.qir' | sort)
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
