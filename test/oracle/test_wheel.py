"""The wheel: built around the program, installed where there is no compiler, used from the shell and from Python."""

import os
import shutil
import subprocess
import sys
import unittest
import zipfile

from common import BUILD, DIGITS, QXC, ROOT, OracleCase, alone, python_with

TOOLS = ["build==1.6.1", "scikit-build-core==1.1.2", "vermin==1.9.2"]
TEN_LINES = """
import sys, numpy as np, qxc
data = np.load("calib.npz")["image"]
model = qxc.quantize("digits.onnx", data)
rows = model.compare(data=data[:20])
print(model.info["products_quantized"], len(rows), len(model.to_onnx("qdq")) > 10000)
print(sorted(model.to_c()))
try:
    qxc.load(model.text.replace("Gemm(", "Gem(", 1)).to_onnx()
except qxc.Error as e:
    print(e.errors[0].line, e.errors[0].message)
"""


def pythons():
    """This one, and others that are new enough and work: a name may be there for a version that is not."""
    names = [f"python3.{n}" for n in range(10, 20) if n != sys.version_info.minor]
    found = [sys.executable, *filter(None, map(shutil.which, names))]
    return [p for p in found if subprocess.run([p, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0]


class Wheel(OracleCase):
    def wheel(self):
        if not shutil.which("cmake"):
            self.skipTest("needs the program cmake (make deps)")
        python = python_with("wheel", TOOLS, "the tools that build wheels")
        with alone(BUILD / "wheel-test"):
            done = subprocess.run([python, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check", "--outdir",
                                   self.scratch, f"-Ccmake.define.PROGRAM={QXC}", f"-Cbuild-dir={BUILD / 'wheel-test/cmake'}", ROOT],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return next(self.scratch.glob("*.whl"))

    def test_installed(self):
        wheel = self.wheel()
        self.assertRegex(wheel.name, r"^qxc-[0-9.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(wheel) as z:
            self.assertIn("qxc/py.typed", z.namelist())
            self.assertTrue({"LICENSE", "NOTICE"} <= {os.path.basename(n) for n in z.namelist()})
        for python in pythons():
            with self.subTest(python):
                self.installed(python, wheel)

    def installed(self, python, wheel):
        folder = self.scratch / "installed"
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = subprocess.run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel], capture_output=True,
                             text=True, check=False)
        if pip.returncode:
            self.skipTest(f"needs NumPy from PyPI: {pip.stderr[-200:]}")
        for name in ("digits.onnx", "calib.npz"):
            shutil.copy(DIGITS / name, folder / name)
        bare = {"PATH": str(folder / "bin"), "HOME": str(folder)}  # no compiler, no other qxc
        shell = subprocess.run([folder / "bin/qxc", "info", "digits.onnx"], cwd=folder, env=bare, check=True, capture_output=True, text=True)
        self.assertIn("came as float", shell.stdout)
        data = subprocess.run([folder / "bin/qxc", "calib-data", "calib.npz", "--model", "digits.onnx", "--limit", "9", "-o", "nine.npz"], cwd=folder,
                              env=bare, check=True, capture_output=True, text=True)
        self.assertIn("9 samples of arrays, float32[1,8,8]", data.stderr)
        ten = subprocess.run([folder / "bin/python", "-c", TEN_LINES], cwd=folder, env=bare, check=False, capture_output=True, text=True)
        self.assertEqual("", ten.stderr)
        lines = ten.stdout.splitlines()
        self.assertRegex(lines[0], r"^5 [1-9]\d* True$")
        self.assertEqual("['model.c', 'model.h']", lines[1])
        self.assertRegex(lines[2], r"^\d+ ONNX has no operator Gem")
        program = next(folder.glob("lib/python*/site-packages/qxc/_bin/qxc"))
        program.unlink()
        gone = subprocess.run([folder / "bin/qxc", "info", "digits.onnx"], cwd=folder, env=bare, check=False, capture_output=True, text=True)
        self.assertEqual(1, gone.returncode)
        self.assertIn("is not in this installation", gone.stderr)

    def test_old_pythons_read_it(self):
        python = python_with("wheel", TOOLS, "the tools that build wheels")
        subprocess.run([python.parent / "vermin", "-t=3.10-", "--no-tips", "--eval-annotations", ROOT / "python/src"], check=True,
                       capture_output=True)


if __name__ == "__main__":
    unittest.main()
