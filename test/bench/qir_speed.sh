#!/bin/sh
# Speed of reading and printing .qir text, in bytes per second of one core's time; without a file
# also beside that of onnx's own text, where PYTHON has onnx:
#   test/bench/qir_speed.sh [FILE.qir [ROUNDS]]
#   test/bench/qir_speed.sh -build    only builds the program that measures
# BUILD names the build folder (default build), whose library it takes.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
${CC:-cc} -std=gnu11 -O2 -I. -I"$build" -o "$build/qir_speed" test/bench/qir_speed.c \
    "$build/libqxc.a" -lprotobuf-c -lzip -ljansson -lm
[ "${1:-}" = -build ] && exit
"$build/qir_speed" "$@"
if [ $# = 0 ] && "${PYTHON:-python3}" -c 'import onnx' 2>/dev/null; then
    BUILD=$build "${PYTHON:-python3}" test/bench/text_speed.py
fi
