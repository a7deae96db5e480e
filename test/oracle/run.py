#!/usr/bin/env python3
"""Runs the unittest cases of every test_*.py here, or of those whose name contains the argument.

Prints what failed; the last line counts. A case that needs something that may be absent, such as
the folder QXC_SHARED names, calls self.skipTest.
"""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed += 1


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.path.insert(0, str(HERE))
    loader = unittest.defaultTestLoader
    names = sorted(p.stem for p in HERE.glob("test_*.py") if part in p.stem)
    suite = unittest.TestSuite(loader.loadTestsFromName(name) for name in names)
    result = unittest.TextTestRunner(sys.stderr, resultclass=Result).run(suite)
    # Counts methods, so that a failing subTest is one failed test however often it fails.
    bad = [test for test, _ in result.failures + result.errors] + result.unexpectedSuccesses
    failed = len({getattr(test, "test_case", test).id() for test in bad})
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
