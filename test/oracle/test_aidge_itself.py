"""Aidge from PyPI, in an environment of its own: the page's command (docs/from-aidge.md) on the digits, qxc's numbers of what it
wrote beside Aidge's own, and what -target=aidge writes as Aidge computes it. Skipped where Aidge cannot be installed."""

import re
import shutil
import subprocess
import unittest

import numpy as np
import onnx

from common import DIGITS, ROOT, TRAINED_MODELS, OracleCase, for_each, python_with, qxc, qxc_outputs, run_samples, session

PACKAGES = [f"aidge-{p}==0.10.1" for p in ("core", "backend-cpu", "onnx", "quantization")] + ["numpy"]
OWN = '''
scheduler = aidge_core.SequentialScheduler(model)
results = []
for image in np.load("test.npz")["image"].reshape(-1, 1, 1, 8, 8)[:50]:
    scheduler.forward(data=[aidge_core.Tensor(image)])
    results.append(np.array(model.get_ordered_outputs()[0][0].get_operator().get_output(0)).copy())
np.save("own.npy", np.concatenate(results))
'''
READ = '''
import sys, numpy as np, aidge_core, aidge_backend_cpu, aidge_onnx
model = aidge_onnx.load_onnx(sys.argv[1])
model.set_backend("cpu")
model.forward_dims([[1, 1, 8, 8]])
scheduler = aidge_core.SequentialScheduler(model)
results = []
for image in np.load(sys.argv[2]):
    scheduler.forward(data=[aidge_core.Tensor(image[None])])
    results.append(np.array(model.get_ordered_outputs()[0][0].get_operator().get_output(0)).copy())
np.save(sys.argv[3], np.concatenate(results))
'''
RANGE = """qir 1
import "" 17
quant !q = int8q<0.1, 0, range=-20:25>
graph @g (%image : float[1,1,8,8]) -> (%y) {
  const %w : float[2,1,1,1] = [2.0, -1.5]
  %c : float[1,2,8,8] ~ !q = Conv(%image, %w)
  %m : float[1,2,7,7] ~ !q = MaxPool(%c) <kernel_shape=[2, 2]>
  %y = Relu(%m)
}
"""


class Aidge(OracleCase):
    expected_seconds = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = python_with("aidge", PACKAGES, "Aidge")

    def aidge(self, text, *args):
        script = self.scratch / "script.py"
        script.write_text(text)
        done = subprocess.run([self.python, script.name, *args],
                              cwd=self.scratch, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-2000:])

    def test_from_aidge(self):
        """The page's command; then QDQ, QOperators and C of integers."""
        for name in ("digits.onnx", "calib.npz", "test.npz"):
            shutil.copy(DIGITS / name, self.scratch)
        page = (ROOT / "docs/from-aidge.md").read_text()
        self.aidge(re.search(r"```python\n(.*?)```", page, re.S)[1] + OWN)
        own = np.load(self.scratch / "own.npy")
        step = np.min(np.diff(np.unique(own)))
        path = self.scratch / "digits.aidge.onnx"
        x = np.load(DIGITS / "test.npz")["image"].reshape(-1, 1, 8, 8)[:50]
        arrays = {onnx.load(path).graph.input[0].name: x}
        results = {"run": next(iter(qxc_outputs(path, arrays, self.scratch).values()))}
        for form in ("qdq", "qop"):
            out = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-o", out, "-no-sync")
            made = onnx.load(out)
            results[form] = next(iter(run_samples(session(made), made, arrays).values()))
        for name, got in results.items():
            with self.subTest(form=name):  # averages on ties: Aidge sums them up in floats as it goes
                off = np.abs(got.reshape(own.shape) - own) / step
                self.assertLess(np.max(off), 3.5)
                self.assertLess(np.mean(off > 0.5), 0.3)
                same = np.argmax(got.reshape(own.shape), 1) == np.argmax(own, 1)
                self.assertGreaterEqual(np.mean(same), 0.98)
        said = qxc(path, "-emit=c", "-integer-only", "-io=quant", "-no-sync", "-o", self.scratch / "d.c").stderr
        self.assertIn("no floating point", said)

    @for_each("digits", "cnn")
    def test_to_aidge(self, name):
        """aidge_onnx reads what -target=aidge writes, and its CPU backend computes what onnxruntime does."""
        folder = DIGITS if name == "digits" else TRAINED_MODELS
        prefix = "" if name == "digits" else f"{name}."
        out = self.scratch / f"{name}.target.onnx"
        qxc(folder / f"{name}.onnx", f"-calib={folder}/{prefix}calib.npz", "-target=aidge", "-emit=qdq", "-quiet",
            "-no-sync", "-o", out)
        x = np.load(folder / f"{prefix}test.npz")["image"].astype(np.float32).reshape(-1, 1, 8, 8)[:20]
        self.same(out, x)

    def test_range_to_aidge(self):
        """A range narrower than the type, and what is moved within it: Aidge clips and moves floats."""
        text, out = self.scratch / "range.qir", self.scratch / "range.onnx"
        text.write_text(RANGE)
        qxc(text, "-target=aidge", "-emit=qdq", "-quiet", "-no-sync", "-o", out)
        self.same(out, np.linspace(-2, 2, 5 * 64, dtype=np.float32).reshape(5, 1, 8, 8))

    def same(self, out, x):
        np.save(self.scratch / "x.npy", x)
        self.aidge(READ, out.name, "x.npy", "y.npy")
        model = onnx.load(out)
        want = next(iter(run_samples(session(model), model, {"image": x}).values()))
        got = np.load(self.scratch / "y.npy").reshape(want.shape)
        self.assertGreater(len(np.unique(got)), 20)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.max(np.abs(want)))


if __name__ == "__main__":
    unittest.main()
