#!/bin/sh
# Builds the libraries that the program in a wheel holds, as archives: zlib, libzip, jansson and protobuf-c of
# Debian's source packages, which apt fetches and checks.
#   python/libraries.sh FOLDER    FOLDER/lib, FOLDER/include, FOLDER/lib/pkgconfig
# The environment may set CC, AR and RANLIB: for another C library CC="zig cc -target x86_64-linux-musl", for
# macOS CC="zig cc -target aarch64-macos".
set -eu
[ $# = 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
to=$(cd "$1" && pwd)
suite=${SUITE:-bookworm}
made="${CC:=cc} ${AR:=ar} ${RANLIB:=ranlib} $suite"
[ ! -e "$to/made" ] || [ "$(cat "$to/made")" != "$made" ] || exit 0

# Of the source packages alone, whatever the machine's own lists are.
apt() {
    apt-get -qq -o "Dir::Etc::sourcelist=$to/apt/src.sources" -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State::lists=$to/apt/lists" -o "Dir::Cache=$to/apt" -o APT::Sandbox::User=root "$@"
}

mkdir -p "$to/src" "$to/apt/lists/partial" "$to/apt/archives/partial"
cat >"$to/apt/src.sources" <<END
Types: deb-src
URIs: ${MIRROR:-http://deb.debian.org/debian}
Suites: $suite
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
cd "$to/src"
apt update
apt source --download-only zlib libzip jansson protobuf-c

# CMake takes a compiler of one word.
for tool in CC AR RANLIB; do
    eval "words=\$$tool"
    printf '#!/bin/sh\nexec %s "$@"\n' "$words" >"$to/$tool"
    chmod +x "$to/$tool"
done
system=-DCMAKE_SYSTEM_NAME=Linux zlib=
if "$to/CC" -dM -E -x c /dev/null | grep -q __APPLE__; then
    # CMake looks for a tool there that archives have no use for. zlib 1.2 takes every Mac for one of the time before
    # macOS, which had no fdopen.
    system="-DCMAKE_SYSTEM_NAME=Darwin -DCMAKE_INSTALL_NAME_TOOL=false" zlib=-Dfdopen=fdopen
fi
unpack() {
    rm -rf "$1" && mkdir "$1"
    tar -xf "$1_"*.orig.tar.* -C "$1" --strip-components=1
}
build() { # name, folder of its CMakeLists.txt, options
    name=$1 folder=$2
    shift 2
    unpack "$name"
    cmake -S "$name/$folder" -B "$name/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_C_COMPILER="$to/CC" -DCMAKE_AR="$to/AR" -DCMAKE_RANLIB="$to/RANLIB" $system \
        -DCMAKE_INSTALL_PREFIX="$to" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$to" \
        -DBUILD_SHARED_LIBS=OFF "$@" >"$name.log" 2>&1 &&
        cmake --build "$name/build" -j "$(getconf _NPROCESSORS_ONLN)" >>"$name.log" 2>&1 &&
        cmake --install "$name/build" >>"$name.log" 2>&1 || { tail -20 "$name.log" >&2; exit 1; }
}
unpack zlib # Debian's has no files for CMake
(cd zlib && CC="$to/CC" AR="$to/AR" RANLIB="$to/RANLIB" CFLAGS="-O3 -fPIC $zlib" ./configure --static --prefix="$to" &&
    make install) >zlib.log 2>&1 || { tail -20 zlib.log >&2; exit 1; }
build libzip . -DZLIB_LIBRARY="$to/lib/libz.a" -DZLIB_INCLUDE_DIR="$to/include" -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF \
    -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF \
    -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
build jansson . -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
build protobuf-c build-cmake -DBUILD_PROTOC=OFF -DBUILD_TESTS=OFF
printf '%s' "$made" >"$to/made"
