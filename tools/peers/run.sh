#!/bin/sh
# `make accuracy`: docs/accuracy.md and docs/peers.md. MODELS, TOOLS, SEEDS are handed on to tools/peers.
set -eu
cd "$(dirname "$0")/../.."
. test/venv.sh
dir=${BUILD:-build}/venv
venv "$dir"
[ -z "${QXC_SHARED-}" ] || "$dir/bin/python" tools/accuracy.py
set -- --seeds "${SEEDS:-1}"
[ -z "${MODELS-}" ] || set -- "$@" --model $MODELS
[ -z "${TOOLS-}" ] || set -- "$@" --tool $TOOLS
exec "$dir/bin/python" tools/peers "$@"
