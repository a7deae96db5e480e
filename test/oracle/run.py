#!/usr/bin/env python3
"""Runs the unittest cases of every test_*.py here, or of those whose name contains the argument; the
argument may go on with a part of the test's name: arena:quantized_here. `--skipped` runs those alone that the
last run skipped, `--quick` a choice.

Prints what failed and what was skipped and why; the last line counts. A case that needs something that may be
absent, such as the folder QXC_SHARED names, calls self.skipTest. How long each test took is in
BUILD/oracle-seconds.json.
"""

import collections
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pool
from common import BUILD

SKIPPED = BUILD / "oracle-skipped"
# Of each of these kinds something is said in seconds: calibration, types, formats, numbers, C.
QUICK = ("annotation", "bert", "calibrate", "dft", "digits", "doubles", "float_values", "int_layers:qoperator", "legality",
         "requant:model", "scheme", "stated_types", "upgrade", "wide_bias")


def chosen(part):
    """The tests whose file, and perhaps name, contains the part."""
    module, _, name = part.partition(":")
    loader = unittest.defaultTestLoader
    names = sorted(p.stem for p in HERE.glob("test_*.py") if module in p.stem)
    tests = pool.each(loader.loadTestsFromName(n) for n in names)
    return [t for t in tests if name in t.id().rpartition(".")[2]]


def skipped_before():
    ids = set(SKIPPED.read_text().split("\n")) if SKIPPED.exists() else set()
    modules = {i.partition(".")[0] for i in ids if i}
    return [t for m in sorted(modules) for t in chosen(m) if t.id() in ids]


def show(report):
    if report.said.strip():
        print(report.said.rstrip(), flush=True)
    for name in report.failed:
        print(f"FAIL: oracle/{name}", flush=True)


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    gone = []
    if part == "--skipped":
        tests = skipped_before()
    elif part == "--quick":
        choice = {p: chosen(p) for p in QUICK}
        tests = [t for found in choice.values() for t in found]
        gone = [p for p in QUICK if not choice[p]]
    else:
        tests = chosen(part)
    BUILD.mkdir(exist_ok=True)
    reports = pool.run(tests, len(os.sched_getaffinity(0)), BUILD / "oracle-seconds.json", show)
    passed = {name for r in reports for name in r.passed}
    failed = {name for r in reports for name in r.failed}
    reasons = collections.defaultdict(set)
    for r in reports:
        for name, reason in r.skipped:
            reasons[reason].add(name)
    for reason, names in sorted(reasons.items()):
        print(f"skipped, {len(names)} of {', '.join(sorted({n.split('.')[0] for n in names}))}: {reason}")
    for p in gone:
        print(f"FAIL: QUICK names '{p}', and no oracle test is called so")
    skipped = set().union(*reasons.values()) - passed - failed
    SKIPPED.write_text("\n".join(sorted(skipped)))
    print(f"{len(passed)} passed, {len(failed) + len(gone)} failed, {len(skipped)} skipped", flush=True)
    return bool(failed or gone)


if __name__ == "__main__":
    sys.exit(main())
