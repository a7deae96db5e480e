"""What checkers of firmware say about emitted C: nothing, but for what docs/c.md explains."""

import shutil
import subprocess
import unittest

from common import DIGITS, MODELS, OracleCase, for_each, qxc

QUIET = ("bugprone-casting-through-void",  # how -Wcast-align is told that the arena is aligned
         "bugprone-easily-swappable-parameters")  # kernels take many numbers
CHECKS = ",".join(("-*", "bugprone-*", "clang-analyzer-*", *(f"-{q}" for q in QUIET)))
# As on a PC, and as on a processor without micro-kernels.
BUILDS = {"plain": (), "portable": ("-U__SSE2__",)}


class Lint(OracleCase):
    def emit(self, name):
        source = self.scratch / f"{name}.c"
        if name == "digits":
            options = (DIGITS / "digits.onnx", f"-calib={DIGITS / 'calib.npz'}", "-requant=single")
        else:
            self.shared_model(f"{name}_int8_qdq.onnx")
            options = (MODELS / f"{name}_int8_qdq.onnx",)
        qxc(*options, "-emit=c", "-io=quant", "-no-sync", "-quiet", "-o", source)
        return source

    def need(self, tool):
        if not shutil.which(tool):
            raise unittest.SkipTest(f"there is no {tool}: tools/install_deps.sh installs it")

    @for_each("digits", "kws", "ic")
    def test_clang_tidy(self, name):
        self.need("clang-tidy-19")
        source = self.emit(name)
        for build, flags in (BUILDS if name == "digits" else {"portable": BUILDS["portable"]}).items():
            with self.subTest(build=build):
                done = subprocess.run(
                    ["clang-tidy-19", "--quiet", f"--checks={CHECKS}", "--warnings-as-errors=*", source,
                     "--", "-std=c99", *flags], capture_output=True, text=True, check=False)
                self.assertEqual((0, ""), (done.returncode, done.stdout[:3000]))

    @for_each("digits", "kws")
    def test_cppcheck(self, name):
        """The portable code: -D says that no other macro is defined. Large tables take it minutes."""
        self.need("cppcheck")
        done = subprocess.run(
            ["cppcheck", "--quiet", "--std=c99", "--enable=warning,performance,portability",
             "--error-exitcode=1", "-D__GNUC__=12", self.emit(name)], capture_output=True, text=True,
            check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr[:3000]))

    def test_a_fault_is_found(self):
        """Otherwise the checkers might look at nothing."""
        self.need("clang-tidy-19")
        self.need("cppcheck")
        source = self.emit("digits")
        source.write_text(source.read_text() + "\nint fault(void);\nint fault(void) {\n"
            "    int a[2] = {1, 2};\n    return a[2];\n}\n")
        for command in (["clang-tidy-19", "--quiet", f"--checks={CHECKS}", "--warnings-as-errors=*", source,
                         "--", "-std=c99"], ["cppcheck", "--quiet", "--error-exitcode=1", source]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertNotEqual(0, done.returncode, command[0])
