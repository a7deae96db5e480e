# Sourced. Counts of tests, for scripts that end with a line of them. Logs are kept in BUILD, `build` where that is not set.
passed=0 failed=0 skipped=0

# One check that holds or not; exit status 77 says that it could not be made.
check() { # name, command
    local name=$1
    shift
    "$@"
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *)
        echo "FAIL: $name" >&2
        failed=$((failed + 1))
        ;;
    esac
}

# A command that ends with a line of counts, which are added. False where it does not. Of a failure make has the last word.
counted() { # name, command
    local name=$1 log last
    shift
    log="${BUILD:-build}/test-$name.log"
    mkdir -p "${log%/*}"
    "$@" 2>&1 | tee "$log" | sed '$d'
    last=$(grep -v '^make\(\[[0-9]*\]\)\?: \*\*\*' "$log" | tail -n 1)
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
        printf '%-8s%s\n' "$name" "$last"
    else
        printf '%s\n' "$last"
        echo "FAIL: $name did not run to its end" >&2
        failed=$((failed + 1))
        return 1
    fi
}

# The same, of tests that were skipped before: those that ran now are skipped no longer.
recounted() { # name, command
    local before=$skipped ran=$((passed + failed))
    counted "$@" && skipped=$((before - (passed + failed - ran)))
}

# The line; false where something failed.
counts() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
