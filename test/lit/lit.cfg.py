"""The lit suite: one file holds input, command (RUN:) and expectation (CHECK:).

In RUN lines `qxc`, `FileCheck` and `not` are programs; %s is the file, %t a scratch name, %S the
file's folder, %qxc the path of qxc, %root and %build the folders of sources and of what was built, %shared the folder
of large models (`REQUIRES: shared`), %python the interpreter with onnx and onnxruntime, %cc a C compiler with the flags
for emitted C.
"""

import os
import pathlib
import shutil
import sys

import lit.formats

config.name = "qxc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".qir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(lit_config.params.get("build", root / "build"))
config.test_exec_root = str(build / "lit")

# A folder of programs under the names that tests use, first on the PATH.
programs = build / "lit-bin"
programs.mkdir(parents=True, exist_ok=True)


def provide(name, target):
    """Makes `name` a link to `target`; atomic, as several lit may run on one build folder."""
    fresh = programs / f".{name}.{os.getpid()}"
    fresh.symlink_to(target)
    fresh.replace(programs / name)


def provide_script(name, text):
    fresh = programs / f".{name}.{os.getpid()}"
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.replace(programs / name)


versions = [f"FileCheck-{v}" for v in range(30, 13, -1)]
filecheck = next((p for p in map(shutil.which, ["FileCheck", "FileCheck-19", *versions]) if p), None)
if not filecheck:
    lit_config.fatal("FileCheck is not installed (make deps)")
provide("FileCheck", filecheck)

qxc = build / "qxc"
if "roundtrip" in lit_config.params:
    # Every compile also prints, parses and compares its module.
    provide_script("qxc", f"""#!/bin/sh
case "${{1-}}" in
run | compare | fmt | stats | reduce | list | -help | --help | -version | --version) ;;
*) set -- "$@" -verify-roundtrip ;;
esac
exec "{qxc}" "$@"
""")
else:
    provide("qxc", qxc)

config.environment["PATH"] = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
config.environment["NO_COLOR"] = "1"
config.environment["LC_ALL"] = "C.UTF-8"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "HOME", "TMPDIR", "FILECHECK_OPTS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

shared = pathlib.Path(os.environ.get("QXC_SHARED") or root.parent / "shared").resolve()
if (shared / "models").is_dir():
    config.available_features.add("shared")
if (shared / "design/samples").is_dir():
    config.available_features.add("samples")
if shutil.which("tree-sitter"):  # not in every Debian: tools/editors/README.md
    config.available_features.add("tree-sitter")
if all(map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm"))):
    config.available_features.add("cortex-m")
if os.geteuid() == 0:
    config.available_features.add("root")

config.substitutions += [
    ("%shared", str(shared)),
    ("%qxc", str(programs / "qxc")),
    ("%root", str(root)),
    ("%build", str(build)),
    ("%python", sys.executable),
    ("%cc", "cc -std=c99 -pedantic -Wall -Wextra -Werror -ffp-contract=off"),
]
