#!/bin/sh
# Puts what runs on Arm64 beside qxc's C into a folder (build/aarch64): Debian's Python for arm64 (root/), and wheels for it
# (site/). QEMU plays it; nothing is installed. Needs apt-get, dpkg, pip and network.
set -eu
dir=${1:-${BUILD:-build}/aarch64}
release=bookworm                                # with Python 3.11
onnxruntime=1.31.1
wheels="onnxruntime==$onnxruntime numpy==2.3.5 ai-edge-litert==2.3.0 flatbuffers packaging"
debs="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 zlib1g libexpat1 libstdc++6 libgcc-s1
      libssl3 libffi8 libbz2-1.0 liblzma5"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/apt/sources" "$dir/debs" "$dir/wheels" \
    "$dir/root" "$dir/site"
dir=$(cd "$dir" && pwd)
: >"$dir/apt/status"
cat >"$dir/apt/sources/debian.sources" <<END
Types: deb
URIs: http://deb.debian.org/debian
Suites: $release
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
apt() { # with lists of its own, so that this machine's know no other processor
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Dir::State="$dir/apt" -o Dir::State::lists="$dir/apt/lists" -o Dir::State::status="$dir/apt/status" \
        -o Dir::Cache="$dir/apt/cache" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$dir/apt/sources" "$@"
}
apt update
# shellcheck disable=SC2086 # one word per package
(cd "$dir/debs" && apt download $debs)
for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$dir/root"; done
# shellcheck disable=SC2086
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    --python-version 311 --implementation cp --abi cp311 --abi none --dest "$dir/wheels" $wheels
for wheel in "$dir"/wheels/*.whl; do "${PYTHON:-python3}" -m zipfile -e "$wheel" "$dir/site"; done
echo "$dir holds Python for arm64 with $wheels"
