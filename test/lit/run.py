#!/usr/bin/env python3
"""Runs the lit suite, or the part of it given as a path below test/lit, with or without .qir; `--skipped` runs
what the last run skipped, `--quick` is all of it.

Prints what failed; the last line counts. Environment: BUILD, QXC_SHARED, ROUNDTRIP.
"""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
# What makes a feature of lit.cfg.py available.
NEEDS = {"shared": "the models of QXC_SHARED=DIR (DIR/models)", "samples": "the texts of QXC_SHARED=DIR (DIR/design/samples)",
         "tree-sitter": "the program tree-sitter (make deps)",
         "cortex-m": "arm-none-eabi-gcc and qemu-system-arm (make deps)", "root": "to be root"}


def choose(part):
    """The test files or folders that `part` names; every test when it is empty."""
    if not part:
        return [HERE]
    exact = HERE / part
    if exact.exists():
        return [exact]
    return sorted(exact.parent.glob(exact.name + "*"))


def skipped_before(report):
    """Files of tests, which lit calls `qxc :: PATH`."""
    try:
        tests = json.loads(report.read_text())["tests"]
    except (OSError, ValueError, KeyError):
        return []
    return [HERE / t["name"].split(" :: ")[1] for t in tests if t["code"] in SKIPPED]


def show_skipped(tests):
    for t in tests:
        if t["code"] in SKIPPED:
            missing = re.findall(r"[\w-]+", t["output"].partition(":")[2])
            print(f"skipped, {t['name']}: needs {', '.join(NEEDS.get(m, m) for m in missing)}")


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    build = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
    report = build / "lit.json"
    if part == "--skipped":
        tests = skipped_before(report)
        if not tests:
            print("0 passed, 0 failed, 0 skipped")
            return 0
    else:
        tests = choose("" if part == "--quick" else part)
    if not tests:
        print(f"no lit test is called '{part}'")
        print("0 passed, 1 failed, 0 skipped")
        return 1
    report.unlink(missing_ok=True)
    shutil.rmtree(build / "lit", ignore_errors=True)  # what is there may keep files from being replaced
    command = [str(pathlib.Path(sys.executable).parent / "lit"), "-q", "-vv", "-o", str(report),
               "--allow-empty-runs", f"-Dbuild={build}"]
    if importlib.util.find_spec("psutil"):  # lit needs it to stop a test
        command.append(f"--timeout={300 if os.environ.get('SANITIZE') else 180}")
    if os.environ.get("ROUNDTRIP"):
        command.append("-Droundtrip=1")
    subprocess.run(command + [str(t) for t in tests], check=False, stdin=subprocess.DEVNULL)
    try:
        done = json.loads(report.read_text())["tests"]
        codes = [t["code"] for t in done]
    except (OSError, ValueError, KeyError):
        print("lit did not run to its end")
        return 1
    show_skipped(done)
    passed = sum(c in PASSED for c in codes)
    skipped = sum(c in SKIPPED for c in codes)
    failed = len(codes) - passed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
