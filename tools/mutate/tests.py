"""The project's tests, each as something that can be run against one mutant and says whether it passed."""

import collections
import contextlib
import functools
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import lit.discovery
import lit.LitConfig
import lit.Test
import lit.worker

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLE = ROOT / "test/oracle"
sys.path.insert(0, str(ORACLE))

import pool

PASSED = {lit.Test.PASS, lit.Test.XFAIL, lit.Test.FLAKYPASS}
ORACLE_SECONDS = ROOT / "build/oracle-seconds.json"  # which `make test` writes
ORACLE_SLOWEST = 4  # seconds; hundreds of mutants meet a test, and what takes longer is a handful of them
# Of the tests below test/lit, those that are about the files of a folder.
OWN = {"passes": ("passes",), "target": ("target",), "ir/ops": ("verify", "exec"), "ir": ("qir", "scheme")}


class LitTest:
    def __init__(self, config, test):
        self.config, self.test = config, test
        self.path = pathlib.Path(test.getSourcePath())
        self.name = "lit/" + "/".join(test.path_in_suite)

    def run(self, environment, limit):
        self.test.config.environment.update(environment)
        self.test.config.maxIndividualTestTime = limit
        result = lit.worker._execute(self.test, self.config)
        for name in environment:
            del self.test.config.environment[name]
        return result.code in PASSED


class ForkedTest:
    """A function that is called in a process of its own and says whether all is well."""

    def __init__(self, name, path, call):
        self.name, self.path, self.call = name, path, call

    def run(self, environment, limit):
        child = os.fork()
        if child == 0:
            self.child(environment)
        end, status = time.monotonic() + limit, 0
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not done:
            os.waitpid(child, 0)
        return bool(done) and status == 0

    def child(self, environment):
        passed = False
        try:
            os.setsid()
            os.environ.update(environment)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            passed = self.call()
        finally:
            os._exit(not passed)


def run_program(program):
    return subprocess.run([program], cwd=ROOT, check=False).returncode == 0


def run_case(case):
    os.chdir(ROOT)
    return unittest.TextTestRunner(failfast=True).run(unittest.TestSuite([case])).wasSuccessful()


def all_tests(build, worker, wanted):
    """Name to test, of those whose names start with one of `wanted`. `build` holds the program with the mutants; `worker` tells
    scratch folders apart."""
    tests = lit_tests(build, build / f"worker{worker}")
    for path in sorted((ROOT / "test/unit").glob("test_*.c")):
        tests.append(ForkedTest(f"unit/{path.stem}", path, functools.partial(run_program, build / "unit" / path.stem)))
    for path in sorted(ORACLE.glob("test_*.py")):
        if f"oracle/{path.stem}".startswith(wanted) or any(w.startswith(f"oracle/{path.stem}") for w in wanted):
            tests += oracle_tests(build, path)
    return {test.name: test for test in tests if test.name.startswith(wanted)}


def lit_tests(build, scratch):
    scratch.mkdir(exist_ok=True)
    for program in ("qxc", "grammar_trace"):
        link = scratch / program
        link.unlink(missing_ok=True)
        link.symlink_to(build / program)
    config = lit.LitConfig.LitConfig("lit", [], "error", False, False, [], False, False, False, "lexical",
                                     {"build": str(scratch)})
    with contextlib.redirect_stdout(None):
        found = lit.discovery.find_tests_for_inputs(config, [str(ROOT / "test/lit")])
    return [LitTest(config, test) for test in found]


@functools.cache
def oracle_seconds():
    return pool.read_json(ORACLE_SECONDS, {})


def oracle_tests(build, path):
    """Each method is a test, unless it is known to be slow."""
    os.environ["QXC"] = str(build / "qxc")  # which the modules read
    found = pool.each(unittest.defaultTestLoader.loadTestsFromName(path.stem))
    return [ForkedTest(f"oracle/{case.id()}", path, functools.partial(run_case, case)) for case in found
            if oracle_seconds().get(case.id(), 0) <= ORACLE_SLOWEST]


def order(mutant, names, seconds):
    """`names` as they are run against `mutant`: those of its file's name, of its folder, of lit and unit, the rest. Of each file
    of oracle tests the quickest comes first, then the next of each: those of one file notice much the same."""
    file = pathlib.PurePath(mutant.file)
    stem = file.stem.replace("_", "-")
    own = next(folders for top, folders in OWN.items() if mutant.file.startswith(top))
    quickest = sorted(names, key=lambda name: seconds.get(name, 0))
    turn, met = {}, collections.defaultdict(itertools.count)
    for name in quickest:
        turn[name] = next(met[name.partition(".")[0]]) if name.startswith("oracle/") else 0

    def key(name):
        kind, *folder, test = name.split("/")
        near = 0 if kind == "lit" and test.startswith(stem) else 1 if folder and folder[0] in own else \
            3 if kind == "oracle" else 2
        return near, turn[name], seconds.get(name, 0)

    return sorted(names, key=key)
