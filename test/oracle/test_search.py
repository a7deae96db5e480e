#!/usr/bin/env python3
"""-search: what it says of a candidate is what onnxruntime computes of it on the samples held back, and what it takes is the best."""

import re
import sys
import unittest

import numpy as np
import onnx

import common
from common import DIGITS, ROOT, OracleCase, qxc, run_samples, session, sqnr

ROW = re.compile(r"^  ([ *]) +([0-9.]+) dB  (.*)$", re.M)
MODELS = ROOT / "test/models"


class Search(OracleCase):
    def parts(self, data):
        """The third that is held back, and a file of the others."""
        with np.load(data) as loaded:
            arrays = {k: loaded[k] for k in loaded}
        rest = self.scratch / "rest.npz"
        held = {k: v[2::3] for k, v in arrays.items()}
        np.savez(rest, **{k: np.delete(v, np.s_[2::3], axis=0) for k, v in arrays.items()})
        return held, rest

    @common.for_each("digits", "cancer", "unet")
    def test_judged_as_onnxruntime_does(self, name):
        path, data = (DIGITS / "digits.onnx", DIGITS / "calib.npz") if name == "digits" else (MODELS / f"{name}.onnx", MODELS / f"{name}.calib.npz")
        held, rest = self.parts(data)
        done = qxc(path, f"-calib={data}", "-search", "-emit=qdq", "-o", self.scratch / "best.onnx")
        rows = ROW.findall(done.stderr)
        self.assertGreater(len(rows), 8, done.stderr)
        taken = [r for r in rows if r[0] == "*"] or rows[:1]
        least = 0.1  # dB that a choice has to win
        self.assertGreater(float(taken[-1][1]) + least, max(float(r[1]) for r in rows if not re.search("16 bits|placement|loses", r[2])))
        model = onnx.load(path)
        want = run_samples(session(path), model, held)
        for _, told, words in [rows[0], rows[3], *taken]:
            out = self.scratch / "candidate.onnx"
            self.assertNotIn("16 bits", words)
            qxc(path, f"-calib={rest}", *(words.split() if words != "default" else []), "-emit=qdq", "-quiet", "-o", out)
            got = run_samples(session(out), model, held)
            worst = min(sqnr(want[k], got[k]) for k in want)
            common.talk(f"{name}: {words}: told {told} dB, onnxruntime {worst:.2f} dB")
            self.assertAlmostEqual(worst, float(told), delta=0.2)

    def test_what_loses_on_the_other_samples(self):
        """A calibrator that cuts is better on the samples held back, and worse on those that it was made of."""
        path, data = MODELS / "cancer.onnx", MODELS / "cancer.calib.npz"
        _, rest = self.parts(data)
        done = qxc(path, f"-calib={data}", "-search=8-tries", "-emit=qdq", "-o", self.scratch / "best.onnx")
        words = next(r[2] for r in ROW.findall(done.stderr) if "loses" in r[2]).split(";")[0]
        model = onnx.load(path)
        with np.load(rest) as loaded:
            fitted = {k: loaded[k] for k in loaded if k == "x"}
        want, found = run_samples(session(path), model, fitted), []
        for options in [], words.split():
            out = self.scratch / "candidate.onnx"
            qxc(path, f"-calib={rest}", *options, "-emit=qdq", "-quiet", "-o", out)
            got = run_samples(session(out), model, fitted)
            found.append(min(sqnr(want[k], got[k]) for k in want))
        self.assertLess(found[1], found[0] - 0.3)

    def test_what_a_metric_gets(self):
        """The file holds what onnxruntime computes of the candidate, and of the float model, on the samples it names."""
        data, kept = DIGITS / "calib.npz", self.scratch / "kept.npz"
        held, rest = self.parts(data)
        command = f"cp {{}} {kept} && echo 0.5"
        qxc(DIGITS / "digits.onnx", f"-calib={data}", "-search=1-tries", f"-metric={command}", "-emit=qdq", "-o", self.scratch / "m.onnx")
        out = self.scratch / "same.onnx"
        qxc(DIGITS / "digits.onnx", f"-calib={rest}", "-emit=qdq", "-quiet", "-o", out)
        model = onnx.load(DIGITS / "digits.onnx")
        with np.load(kept) as got, np.load(data) as all_of:
            self.assertEqual(sorted(got), ["float:logits", "logits", "qxc:samples"])
            np.testing.assert_array_equal(all_of["image"][got["qxc:samples"]], held["image"])
            for path, name in ((DIGITS / "digits.onnx", "float:logits"), (out, "logits")):
                want = run_samples(session(path), model, held)["logits"]
                self.assertGreater(sqnr(want.reshape(got[name].shape), got[name]), 60)

    def test_the_metric_decides(self):
        """What is taken has the largest number, whatever its SQNR is, and the same of its negation; -max-drop goes by it as well."""
        data = DIGITS / "calib.npz"
        judge = self.scratch / "judge.py"
        judge.write_text("import sys, numpy as np\nz = np.load(sys.argv[1])\n"
                         "print(%s * float(np.abs(z['logits'] - z['float:logits']).max()))\n")
        found = {}
        for sign in "-1", "1":
            script = self.scratch / f"judge{sign}.py"
            script.write_text(judge.read_text().replace("%s", sign))
            done = qxc(DIGITS / "digits.onnx", f"-calib={data}", "-search", f"-metric={sys.executable} {script}", "-emit=qdq", "-o", self.scratch / "x.onnx")
            rows = re.findall(r"^  ([ *]) +(-?[0-9.]+) +([0-9.]+) dB  (.*)$", done.stderr, re.M)
            best = max(float(r[1]) for r in rows if "16 bits" not in r[3])
            self.assertEqual(float(([r for r in rows if r[0] == "*"] or rows)[-1][1]), best, done.stderr)
            found[sign] = best
        self.assertLess(-found["-1"], found["1"])
        done = qxc(DIGITS / "digits.onnx", f"-calib={data}", "-weights=int4", "-no-bias-correction", "-max-drop=1.5",
                   f"-metric={sys.executable} {self.scratch / 'judge-1.py'}", "-emit=qdq", "-o", self.scratch / "x.onnx")
        before, after = (float(v) for v in re.findall(r"metric (-[0-9.]+) where the float model has 0", done.stderr.replace("-0\n", "0\n")))
        self.assertLess(before, -1.5)
        self.assertGreaterEqual(after, -1.5)
        self.assertIn("stays float (alone", done.stderr)


if __name__ == "__main__":
    unittest.main()
