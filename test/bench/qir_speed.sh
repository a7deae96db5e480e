#!/bin/sh
# Speed of reading and printing .qir text, of one core:
#   test/bench/qir_speed.sh [FILE.qir]
# BUILD names the build folder (default build), whose library it takes.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
${CC:-cc} -std=gnu11 -O2 -I. -I"$build" -o "$build/qir_speed" test/bench/qir_speed.c \
    "$build/libqxc.a" -lprotobuf-c -lzip -ljansson -lm
exec "$build/qir_speed" "$@"
