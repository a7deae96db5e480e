#!/usr/bin/env python3
"""-search: what it says of a candidate is what onnxruntime computes of it on the samples held back, and what it takes is the best."""

import re
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
        taken = [r for r in rows if r[0] == "*"]
        self.assertEqual(max(float(r[1]) for r in rows if "16 bits" not in r[2]), float((taken or rows)[-1][1]))
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


if __name__ == "__main__":
    unittest.main()
