#!/bin/sh
# `make bench`: tools/bench in a virtual environment of its own, which holds what runs beside qxc.
# SECTIONS, ROUNDS, MODELS, PAGE are handed on. Without network the others' columns stay empty.
set -eu
cd "$(dirname "$0")/../.."
. test/venv.sh
dir=${BUILD:-build}/bench-venv
venv "$dir"
"$dir/bin/pip" install --quiet --disable-pip-version-check --requirement tools/bench/requirements.txt \
    </dev/null || echo "bench: without the packages of tools/bench/requirements.txt" >&2
set --
[ -z "${PAGE-}" ] || set -- "$@" -o "$PAGE"
[ -z "${ROUNDS-}" ] || set -- "$@" --rounds "$ROUNDS"
[ -z "${SECTIONS-}" ] || { [ "$SECTIONS" = all ] && set -- "$@" --section all || set -- "$@" --section "$SECTIONS"; }
[ -z "${MODELS-}" ] || set -- "$@" --model $MODELS
exec "$dir/bin/python" tools/bench "$@"
