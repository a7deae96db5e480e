#!/bin/sh
# Speed of reading and printing .qir text, in bytes per second of one core's time, and that of
# onnx's own text where PYTHON has onnx:
#   test/bench/qir_speed.sh [FILE.qir]
# BUILD names the build folder (default build), whose library it takes.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
${CC:-cc} -std=gnu11 -O2 -I. -I"$build" -o "$build/qir_speed" test/bench/qir_speed.c \
    "$build/libqxc.a" -lprotobuf-c -lzip -ljansson -lm
"$build/qir_speed" "$@"
if "${PYTHON:-python3}" -c 'import onnx' 2>/dev/null; then
    "${PYTHON:-python3}" test/bench/onnx_text_speed.py
fi
