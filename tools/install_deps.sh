#!/bin/sh
# Installs what qxc needs to build and to be tested.
#   tools/install_deps.sh  install what is missing (Debian, Ubuntu; root or sudo)
#   tools/install_deps.sh --check [build|fuzz]  only say what is missing; exit 1 when something is
#   tools/install_deps.sh --if-possible [build|fuzz]  install where we can, else as --check
# `build` leaves out what only the tests need; `fuzz` adds what `make fuzz` needs.
set -u

mode=install
case "${1-}" in
--check) mode=check; shift ;;
--if-possible) mode=try; shift ;;
esac
scope=${1-all}

missing= # names of Debian packages
optional= # those of them that tests can do without, and are skipped

need() { # package, then a command that succeeds when it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 && return
    case " $missing " in *" $package "*) return ;; esac
    missing="$missing $package"
}
program() { need "$2" command -v "$1"; }
library() { need "$2" pkg-config --exists "$1"; }
# Asked for where apt has it; when it has no package lists yet, that cannot be told.
wish() { # package, then a command that succeeds when it is there
    package=$1
    shift
    "$@" >/dev/null 2>&1 && return
    in_apt gcc && ! in_apt "$package" && return
    missing="$missing $package"
    optional="$optional $package"
}
in_apt() { apt-cache madison "$1" 2>/dev/null | grep -q .; } # in a list, not only installed

filecheck() { # distributions install it with its version in the name
    for version in '' -19 -20 -21 -18 -17 -16 -15 -14; do
        command -v "FileCheck$version" && return
    done
    return 1
}
llvm_tools() { # the newest that apt has, but version 19 where it has that
    for version in 19 18 17 16 15 14; do
        in_apt "llvm-$version-tools" && break
        version=19
    done
    echo "llvm-$version-tools"
}
sanitizers() { # of a compiler
    echo 'int main(void) { return 0; }' | "$1" -fsanitize=address,undefined -x c -o /dev/null -
}

newlib() { # of a compiler
    echo '#include <stdio.h>' | "$1" -fsyntax-only -x c -
}

libfuzzer() { # of a compiler
    echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return 0 * (!p + n); }' |
        "$1" -fsanitize=fuzzer -x c -o /dev/null -
}

look() {
    missing=
    optional=
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
    filecheck >/dev/null || need "$(llvm_tools)" false
    if [ "$scope" = fuzz ]; then
        program clang-19 clang-19
        need libclang-rt-19-dev libfuzzer clang-19
        return
    fi
    # Emitted C is compiled as C and as C++ by two compilers; sources have one format.
    wish g++ command -v g++
    wish clang-19 command -v clang++-19
    wish libclang-rt-19-dev sanitizers clang-19
    wish clang-format-19 command -v clang-format-19
    wish tree-sitter-cli command -v tree-sitter
    # Emitted C runs on other processors, which QEMU plays, and pleases checkers of firmware.
    wish qemu-user command -v qemu-aarch64
    wish qemu-system-arm command -v qemu-system-arm
    wish gcc-arm-none-eabi command -v arm-none-eabi-gcc
    wish libnewlib-arm-none-eabi newlib arm-none-eabi-gcc
    wish gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
    wish libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdio.h
    wish gcc-riscv64-linux-gnu command -v riscv64-linux-gnu-gcc
    wish libc6-dev-riscv64-cross test -e /usr/riscv64-linux-gnu/include/stdio.h
    wish cppcheck command -v cppcheck
    wish clang-tidy-19 command -v clang-tidy-19
    # The report is a page.
    wish chromium command -v chromium
    # Growth is counted in instructions.
    wish valgrind command -v valgrind
    # Programs around it are built with CMake.
    wish cmake command -v cmake
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
    echo "installing:$missing" >&2
    as_root apt-get update -qq </dev/null >/dev/null
    look # with package lists at hand the versions are known
    # Another installation may be running, as on a machine that has just started.
    # shellcheck disable=SC2086 # one word per package
    as_root apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends $missing \
        </dev/null >/dev/null
    look
    [ -z "$missing" ] && exit 0
fi

if [ "$missing" = "$optional" ]; then
    echo "missing (names of Debian packages; tests that need them are skipped):$missing" >&2
    exit 0
fi
echo "missing (names of Debian packages):$missing" >&2
if [ "$mode" != check ] && ! can_install; then
    echo "cannot install them here: that takes apt-get and root or password-less sudo" >&2
fi
echo "install them with: tools/install_deps.sh" >&2
echo "or, as root: apt-get update && apt-get install --no-install-recommends$missing" >&2
exit 1
