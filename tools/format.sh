#!/bin/sh
# Formats the C sources in place, or with --check names those that would change.
# Other versions than clang-format 19 differ in details: without it, exit status 77 (not checked).
set -eu
cd "$(dirname "$0")/.."

if command -v clang-format-19 >/dev/null; then
    format=clang-format-19
elif clang-format --version 2>/dev/null | grep -q 'version 19\.'; then
    format=clang-format
else
    echo "format: clang-format 19 is not here, nothing was looked at" >&2
    exit 77
fi

sources() {
    find support ir kernels program exec target passes frontend backend compiler include library tools test examples \
        -name '*.[ch]' 2>/dev/null | sort
}

if [ "${1-}" = --check ]; then
    sources | {
        status=0
        while read -r file; do
            $format "$file" | cmp -s - "$file" && continue
            echo "$file: not formatted (make format)"
            status=1
        done
        exit $status
    }
else
    sources | xargs $format -i
fi
