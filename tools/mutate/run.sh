#!/bin/bash
# Runs tools/mutate/mutate.py in the environment of the tests: `make mutate`.
set -eu
cd "$(dirname "$0")/../.."
. test/venv.sh
tools/install_deps.sh --if-possible
venv build/venv
mkdir -p build/mutate
if ! cmp -s tools/mutate/requirements.txt build/mutate/pip/made-from; then
    rm -rf build/mutate/pip
    build/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --target build/mutate/pip \
        --requirement tools/mutate/requirements.txt
    cp tools/mutate/requirements.txt build/mutate/pip/made-from
fi
PYTHONPATH=$PWD/build/mutate/pip exec build/venv/bin/python tools/mutate/mutate.py "$@"
