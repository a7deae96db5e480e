#!/bin/bash
# Runs every unit test program whose name contains $1; the last line counts the tests in them.
set -u
passed=0 failed=0 skipped=0

count() { # the number that cmocka's summary gives for a word, or 0
    local n
    n=$(sed -n "s/^\[  *$1  *\] \(tests: \)\{0,1\}\([0-9]*\) test(s).*/\2/p" <<<"$output" | tail -n 1)
    echo "${n:-0}"
}

for source in test/unit/test_*"${1-}"*.c; do
    [ -e "$source" ] || continue
    name=$(basename "$source" .c)
    output=$("$BUILD/unit/$name" 2>&1 </dev/null)
    status=$?
    bad=$(count FAILED)
    [ $status != 0 ] && [ "$bad" = 0 ] && bad=1 # it died before its summary
    passed=$((passed + $(count PASSED)))
    skipped=$((skipped + $(count SKIPPED)))
    failed=$((failed + bad))
    if [ "$bad" != 0 ]; then
        echo "$output"
        echo "FAIL: unit/$name (exit status $status)"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
