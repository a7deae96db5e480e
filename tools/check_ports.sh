#!/bin/bash
# Builds qxc for systems that this machine is not, with zig (which comes from PyPI, and has their headers and C libraries):
# for musl, whose program then runs here and has to write the same bytes as BUILD's, and for macOS on both processors, where
# every file is compiled under our own warnings and the program is linked, and cannot be run. The libraries are built, too,
# by python/libraries.sh. Ends with one line, `N passed, N failed, N skipped`. Called by `make check-ports`; the environment
# may set BUILD, TARGETS and PYTHON.
set -u
cd "$(dirname "$0")/.."
. test/counts.sh
export BUILD=${BUILD:-build}
ports=$PWD/build/ports model=examples/digits/digits.onnx data=examples/digits/calib.npz
make=(${MAKE:-make} --no-print-directory)
[[ ${MAKEFLAGS:-} == *jobserver* ]] || make+=("-j$(getconf _NPROCESSORS_ONLN)")

# Another version warns of other things.
zig() {
    { [ -x "$ports/venv/bin/pip" ] || "${PYTHON:-python3}" -m venv "$ports/venv"; } &&
        "$ports/venv/bin/pip" install --quiet --disable-pip-version-check ziglang==0.17.1 &&
        zig=$("$ports/venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__) + "/zig")')
}

libraries() { # target
    CC="$zig cc -target $1" AR="$zig ar" RANLIB="$zig ranlib" python/libraries.sh "$ports/libraries-$1"
}

# Without optimization, which finds the same mistakes in a third of the time. Assertions stay on; zig turns them off.
build() { # target
    PKG_CONFIG='pkg-config --static' PKG_CONFIG_LIBDIR="$ports/libraries-$1/lib/pkgconfig" \
        "${make[@]}" BUILD="build/ports/$1" CC="$zig cc -target $1" AR="$zig ar" HOSTCC="${CC:-cc}" CFLAGS='-O0 -UNDEBUG' KERNEL_LEVEL=-O0 all
}

# The form that a decision takes, and the bytes of integer arithmetic, do not depend on the system.
writes_the_same() { # program
    local to
    to=$(mktemp -d "$ports/same.XXXXXX") && mkdir "$to/this" "$to/other" &&
        "$1" info "$model" >"$to/other/info" && "$BUILD/qxc" info "$model" >"$to/this/info" || return
    for emit in qdq qop c; do
        "$BUILD/qxc" "$model" -calib="$data" -emit=$emit -quiet -o "$to/this/digits.$emit" &&
            "$1" "$model" -calib="$data" -emit=$emit -quiet -o "$to/other/digits.$emit" || return
    done
    diff -r "$to/this" "$to/other" && rm -r "$to"
}

# Every step of one target, none after one that failed.
port() { # target
    libraries "$1" && build "$1" || return
    [[ $1 != *-linux-* ]] || writes_the_same "$ports/$1/qxc"
}

mkdir -p "$ports"
check "build" "${make[@]}" all
if zig; then
    for target in ${TARGETS:-$(uname -m)-linux-musl aarch64-macos x86_64-macos}; do
        check "$target" port "$target"
    done
else
    check "ziglang from PyPI" false
fi
counts
