#!/bin/sh
# Holds every #include against the order of the folders:
#   support < ir, kernels < program < ir/ops < exec, target < frontend, passes, backend < compiler
# and within passes/: what all share < target < raise, prepare, quantize, lower, shrink.
# A folder may include itself and those further left. Only frontend/onnx and backend/onnx may see
# protobuf, and only support/platform.c asks which system it is for and calls what some systems lack.
# Prints FILE:LINE of what breaks this and exits 1. An argument names another tree.
set -eu
cd "${1:-$(dirname "$0")/..}"

sources() {
    find support ir kernels program exec target passes frontend backend compiler -type f \
        \( -name '*.[ch]' -o -name '*.re' -o -name '*.y' -o -name '*.def' \) 2>/dev/null | sort
}

failed=0
systems='__linux__|__APPLE__|__FreeBSD__|_WIN32'
lacking='sigtimedwait|prctl|fopencookie|funopen|memfd_create|sched_getaffinity|sync_file_range|fallocate|strchrnul|st_mtim(espec)?'
if sources | grep -v '^support/platform\.c$' | xargs grep -HnoEw "$systems|$lacking" /dev/null |
    sed 's/:\([^:]*\)$/: \1 is for support\/platform.c only: not every system has it/' | grep .; then
    failed=1
fi

sources | xargs grep -Hn '^[[:space:]]*#[[:space:]]*include' /dev/null | awk -v failed=$failed '
# Level of a file, and its place among the folders of that level.
function level(file) {
    if (file ~ /^support\//) return 1
    if (file ~ /^ir\/ops\//) return 4
    if (file ~ /^(ir|kernels)\//) return 2
    if (file ~ /^program\//) return 3
    if (file ~ /^(exec|target)\//) return 5
    if (file ~ /^(frontend|backend)\//) return 6
    if (file ~ /^passes\/target\//) return 6.2
    if (file ~ /^passes\/[^\/]*\//) return 6.3
    if (file ~ /^passes\//) return 6.1
    if (file ~ /^compiler\//) return 7
    return 0
}
function folder(file) {
    if (file ~ /^ir\/ops\//) return "ir/ops"
    if (file ~ /^passes\/[^\/]*\//) sub(/\/[^\/]*$/, "", file)
    else sub(/\/.*/, "", file)
    return file
}
# Of the three folders beside each other, which never include one another.
function apart(file, other) {
    return int(level(file)) == 6 && substr(file, 1, 5) != substr(other, 1, 5)
}
function bad(why) { print file ":" line ": " why; failed = 1 }
{
    split($0, part, ":")
    file = part[1]
    line = part[2]
    text = $0
    sub(/^[^:]*:[^:]*:/, "", text)
    if (text ~ /protobuf-c|\.pb-c\.h/ && file !~ /^(frontend|backend)\/onnx\//)
        bad("protobuf is for frontend/onnx and backend/onnx only")
    if (text !~ /"/)
        next
    sub(/^[^"]*"/, "", text)
    sub(/".*/, "", text)
    if (text == "kernels_gen.h")
        text = "kernels/" text
    if (text !~ /\//) {
        if (text !~ /^(parser|lexer)\.h$/)
            bad("\"" text "\" is not named from the top folder")
        next
    }
    from = level(file)
    to = level(text)
    if (text ~ /\.pb-c\.h$/)
        next
    if (to == 0)
        bad("\"" text "\" is in no known folder")
    else if (to > from)
        bad(folder(file) " must not include " folder(text) " (\"" text "\")")
    else if (folder(file) != folder(text) && (to == from || (int(to) == 6 && apart(file, text))))
        bad(folder(file) " and " folder(text) " must not include each other (\"" text "\")")
}
END { exit failed }'
