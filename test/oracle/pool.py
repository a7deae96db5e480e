"""Runs the test classes side by side, each in a process of its own, one of many seconds in several.

A class has a process because what it holds (models, sessions, a working folder) then ends with it, and because a
crash in a library takes one class along, not the run. The processes are forked from one that has imported
everything. Those that took longest the last time start first; what they say and find is handed back in the order
of their names, so that a report does not depend on who finished first.
"""

import collections
import itertools
import json
import os
import pickle
import sys
import tempfile
import traceback
import unittest

PART = 30  # seconds of a class after which its next tests get a process of their own

# What a process hands back. `passed` and `failed` are test ids, `skipped` pairs (id, reason), `seconds` by id.
Report = collections.namedtuple("Report", "passed failed skipped seconds said")


def read_json(path, default):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return default


def processor_seconds():
    """Of this process and of those that it waited for; wall time would depend on what else the machine does."""
    return sum(os.times()[:4])


class Result(unittest.TextTestResult):
    """Counts methods, so that a failing subTest is one failed test however often it fails."""

    def __init__(self):
        super().__init__(unittest.runner._WritelnDecorator(sys.stderr), descriptions=True, verbosity=0)
        self.passed, self.seconds = [], {}

    def startTest(self, test):
        super().startTest(test)
        self.start = processor_seconds()

    def stopTest(self, test):
        self.seconds[test.id()] = round(processor_seconds() - self.start, 2)
        super().stopTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test.id())

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed.append(test.id())

    def report(self):
        def name(test):
            return getattr(test, "test_case", test).id()
        bad = {name(test) for test, _ in self.failures + self.errors} | {name(test) for test in self.unexpectedSuccesses}
        skipped = sorted({(name(test), reason) for test, reason in self.skipped})
        return Report(self.passed, sorted(bad), skipped, self.seconds, "")


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def expected(test, times):
    """Seconds: what it took the last time, else what its class says."""
    return times.get(test.id(), getattr(test, "expected_seconds", 1))


def units_of(suite, times):
    """{name: tests}, in the order of names: classes, or parts of them that take at least PART seconds. A class that makes
    something for all its tests stays whole."""
    units = {}
    tests = sorted(each(suite), key=lambda t: unittest.util.strclass(type(t)))
    for name, group in itertools.groupby(tests, lambda t: unittest.util.strclass(type(t))):
        part, seconds = 0, 0
        for test in group:
            whole = "setUpClass" in vars(type(test))
            if seconds >= PART and not whole:
                part, seconds = part + 1, 0
            seconds += expected(test, times)
            units.setdefault((name, part), []).append(test)
    return units


def run_unit(tests):
    result = Result()
    unittest.TestSuite(tests).run(result)
    result.printErrors()
    return result.report()


def start(tests):
    """The process number and the file that will hold its report and what it said."""
    said, report = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        return process, said, report
    try:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        report.write(pickle.dumps(run_unit(tests)))
        report.flush()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # also what is no Exception must not return into the parent's code
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)


def finish(tests, status, said, report):
    """The report of a process that ended; without one all its tests failed."""
    said.seek(0)
    report.seek(0)
    text, data = said.read().decode(errors="replace"), report.read()
    if data:
        return pickle.loads(data)._replace(said=text)
    text += f"\nthe process ended with status {os.waitstatus_to_exitcode(status)} before its report\n"
    return Report([], [t.id() for t in tests], [], {}, text)


def run(suite, workers, times_file, show):
    """Runs the tests, `workers` processes at a time; calls show(report) for each class in the order of names."""
    times = read_json(times_file, {})
    units = units_of(suite, times)
    todo = sorted(units, key=lambda name: -sum(expected(t, times) for t in units[name]))
    running, done, waiting = {}, {}, collections.deque(units)
    while todo or running:
        while todo and len(running) < workers:
            name = todo.pop(0)
            process, *files = start(units[name])
            running[process] = name, files
        process, status = os.wait()
        name, files = running.pop(process)
        done[name] = finish(units[name], status, *files)
        times |= done[name].seconds
        while waiting and waiting[0] in done:
            show(done[waiting.popleft()])
    times_file.write_text(json.dumps(times, indent=0, sort_keys=True))
    return list(done.values())
