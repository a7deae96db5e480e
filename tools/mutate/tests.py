"""The project's tests, each as something that can be run against one mutant and says whether it passed."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import lit.discovery
import lit.LitConfig
import lit.Test
import lit.worker

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSED = {lit.Test.PASS, lit.Test.XFAIL, lit.Test.FLAKYPASS}
# Of the tests below test/lit, those that are about the files of a folder.
OWN = {"passes": ("passes",), "ir/ops": ("verify", "exec"), "ir": ("qir", "scheme")}


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


class ProgramTest:
    """A program that exits with 0 when all is well."""

    def __init__(self, name, path, command, folder, environment):
        self.name, self.path, self.command, self.folder, self.environment = name, path, command, folder, environment

    def run(self, environment, limit):
        process = subprocess.Popen(self.command, cwd=self.folder, env={**os.environ, **self.environment, **environment},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def all_tests(build, worker, wanted):
    """Name to test, of those whose names start with one of `wanted`. `build` holds the program with the mutants; `worker` tells
    scratch folders apart."""
    tests = lit_tests(build, build / f"worker{worker}")
    tests += [ProgramTest(f"unit/{p.stem}", p, [build / "unit" / p.stem], ROOT, {})
              for p in sorted((ROOT / "test/unit").glob("test_*.c"))]
    tests += [ProgramTest(f"oracle/{p.stem}", p, [sys.executable, "-m", "unittest", "-f", p.stem], ROOT / "test/oracle",
                          {"QXC": str(build / "qxc")})
              for p in sorted((ROOT / "test/oracle").glob("test_*.py"))]
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


def order(mutant, names, seconds):
    """`names` as they are run against `mutant`: those of its file's name, of its folder, of lit and unit, the rest."""
    file = pathlib.PurePath(mutant.file)
    stem = file.stem.replace("_", "-")
    own = next(folders for top, folders in OWN.items() if mutant.file.startswith(top))

    def key(name):
        kind, *folder, test = name.split("/")
        near = 0 if kind == "lit" and test.startswith(stem) else 1 if folder and folder[0] in own else \
            3 if kind == "oracle" else 2
        return near, seconds.get(name, 0)

    return sorted(names, key=key)
