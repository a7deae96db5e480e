"""Texts and schemes of released versions still mean what they meant: test/corpus/VERSION, made by test/corpus/keep.py.

What a text means is kept in formats of others: the ONNX model, the scales as onnxruntime's overrides, the
numbers that it computes.
"""

import json
import unittest

import numpy as np
import onnx

from common import ROOT, OracleCase, qxc

CORPUS = ROOT / "test/corpus"
TOLERANCE = 1e-5  # of the largest number: kernels of other processors add floats in another order


def model(path):
    m = onnx.load(path)
    m.ClearField("producer_version")
    return m


class Corpus(OracleCase):
    def means(self, text, end):
        return text.with_name(text.stem + end)

    def meant(self, text):
        """Which of the three were held against the release."""
        out, held = self.scratch / text.parent.name / text.stem, []
        out.parent.mkdir(exist_ok=True)
        then = self.means(text, ".onnx")
        if then.exists():
            qxc(text, "-emit=onnx", "-quiet", "-o", out.with_suffix(".onnx"))
            self.assertEqual(model(then), model(out.with_suffix(".onnx")))
            held.append("onnx")
        then = self.means(text, ".json")
        if then.exists():
            qxc(text, "-emit=overrides", "-quiet", "-o", out.with_suffix(".json"))
            self.assertEqual(json.loads(then.read_text()), json.loads(out.with_suffix(".json").read_text()))
            held.append("json")
        then = self.means(text, ".npz")
        if then.exists():
            qxc("run", text, f"-input={self.means(text, '.in.npz')}", "-quiet", "-o", out.with_suffix(".npz"))
            before, now = np.load(then), np.load(out.with_suffix(".npz"))
            self.assertEqual(sorted(before), sorted(now))
            for name in before:
                np.testing.assert_allclose(now[name], before[name], rtol=0,
                                           atol=TOLERANCE * np.abs(before[name]).max())
            held.append("npz")
        return held

    def test_texts(self):
        held = {}
        for text in sorted(CORPUS.glob("*/*.qir")):
            with self.subTest(text=f"{text.parent.name}/{text.name}"):
                ends = self.meant(text)
                self.assertTrue(ends)
                for end in ends:
                    held.setdefault((text.parent.name, end), []).append(text.stem)
        for version in sorted(p.name for p in CORPUS.iterdir() if p.is_dir()):
            for end in ("onnx", "json", "npz"):
                self.assertGreater(len(held.get((version, end), ())), 5, f"{version} {end}")

    def test_schemes(self):
        schemes = sorted(CORPUS.glob("*/*.scheme"))
        self.assertGreater(len(schemes), 2)
        for scheme in schemes:
            with self.subTest(scheme=f"{scheme.parent.name}/{scheme.name}"):
                out = self.scratch / "scheme.json"
                qxc(scheme.with_name("statistics.qir"), f"-scheme={scheme}", "-emit=overrides", "-quiet", "-o", out)
                now = scheme.with_name(scheme.name + ".since-0.2.0.json")  # CHANGELOG.md says what changed
                then = now if now.exists() else scheme.with_name(scheme.name + ".json")
                self.assertEqual(json.loads(then.read_text()), json.loads(out.read_text()))


if __name__ == "__main__":
    unittest.main()
