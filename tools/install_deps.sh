#!/bin/sh
# Installs what qxc needs to build and to be tested.
#   tools/install_deps.sh                      install what is missing (Debian, Ubuntu; root or sudo)
#   tools/install_deps.sh --check [build]      only say what is missing; exit 1 when something is
#   tools/install_deps.sh --if-possible [build]   install where we can, else as --check
# `build` leaves out what only the tests need.
set -u

mode=install
case "${1-}" in
--check) mode=check; shift ;;
--if-possible) mode=try; shift ;;
esac
scope=${1-all}

missing= # what to call it for the user
packages= # Debian's names

need() { # package, then a command that succeeds when it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 && return
    case " $packages " in *" $package "*) return ;; esac
    packages="$packages $package"
    missing="$missing $package"
}
program() { need "$2" command -v "$1"; }
library() { need "$2" pkg-config --exists "$1"; }
any_version() { # a program that distributions install with its version in the name
    for name in "$1" "$1-19" "$1-20" "$1-21" "$1-18" "$1-17" "$1-16" "$1-15" "$1-14"; do
        command -v "$name" && return
    done
    return 1
}

# Other versions of clang-format format differently; where apt does not have this one, and that can
# only be told when it has package lists, formatting is not checked.
formatter() {
    command -v clang-format-19 && return
    clang-format --version | grep 'version 19\.' && return
    apt-cache show gcc && ! apt-cache show clang-format-19
}

look() {
    missing=
    packages=
    command -v "${CC:-cc}" >/dev/null 2>&1 || program gcc gcc
    program cc gcc
    need libc6-dev test -e /usr/include/stdlib.h -o "$(uname)" != Linux
    program make make
    program re2c re2c
    program lemon lemon
    program protoc-c protobuf-c-compiler
    program pkg-config pkg-config
    library libprotobuf-c libprotobuf-c-dev
    library libzip libzip-dev
    library jansson libjansson-dev
    [ "$scope" = build ] && return
    library cmocka libcmocka-dev
    program python3 python3
    need python3-venv python3 -c 'import ensurepip, venv'
    program protoc protobuf-compiler
    need "$(newest llvm FileCheck -tools)" any_version FileCheck
    need clang-format-19 formatter
}

# The package that has an LLVM tool: version 19 where the distribution knows it, else its default.
newest() { # package prefix, program, package suffix
    for version in 19 18 17 16 15 14; do
        if apt-cache show "$1-$version${3-}" >/dev/null 2>&1; then
            echo "$1-$version${3-}"
            return
        fi
    done
    echo "$1-19${3-}"
}

as_root() { # quiet unless it fails
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

can_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

look
[ -z "$missing" ] && exit 0

if [ "$mode" != check ] && can_install; then
    echo "installing:$packages" >&2
    as_root apt-get update -qq </dev/null >/dev/null
    look # with package lists at hand the versions are known
    # Another installation may be running, as on a machine that has just started.
    # shellcheck disable=SC2086 # one word per package
    as_root apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends $packages \
        </dev/null >/dev/null
    look
    [ -z "$missing" ] && exit 0
fi

echo "missing (names of Debian packages):$missing" >&2
if [ "$mode" != check ] && ! can_install; then
    echo "cannot install them here: that takes apt-get and root or password-less sudo" >&2
fi
echo "install them with: tools/install_deps.sh" >&2
echo "or, as root: apt-get update && apt-get install --no-install-recommends$packages" >&2
exit 1
