#!/usr/bin/env python3
"""-placement=products: what onnxruntime computes is nearer to the float model where products are MatMul and Gemm, its products are
integer as before, and biases are corrected all the same."""

import unittest
from collections import Counter

import numpy as np
import onnx

import common
from common import ROOT, OracleCase, qxc, run_samples, session, sqnr

MODELS = ROOT / "test/models"


class Placement(OracleCase):
    def quantized(self, name, *options):
        out = self.scratch / "q.onnx"
        qxc(MODELS / f"{name}.onnx", f"-calib={MODELS / name}.calib.npz", *options, "-emit=qdq", "-quiet", "-o", out)
        return out

    def reached(self, name, path, of="test"):
        model = onnx.load(MODELS / f"{name}.onnx")
        with np.load(MODELS / f"{name}.{of}.npz") as loaded:
            arrays = {k: loaded[k] for k in loaded}
        want = run_samples(session(MODELS / f"{name}.onnx"), model, arrays, min(100, len(next(iter(arrays.values())))))
        got = run_samples(session(path), model, arrays, min(100, len(next(iter(arrays.values())))))
        return min(sqnr(want[k], got[k]) for k in want)

    def fused(self, path):
        """How many operators of each kind there are once onnxruntime has optimized."""
        saved = self.scratch / "optimized.onnx"
        session(path, optimize=True, save=saved)
        return Counter(n.op_type for n in onnx.load(saved).graph.node)

    @common.for_each(("vit", 1.5), ("charlm", 2), ("cancer", 0.5))
    def test_products_gain(self, case):
        name, least = case
        everywhere = self.quantized(name)
        before, fused = self.reached(name, everywhere), self.fused(everywhere)
        there = self.quantized(name, "-placement=products")
        after, alone = self.reached(name, there), self.fused(there)
        common.talk(f"{name}: {before:.2f} dB, before products alone {after:.2f} dB; {dict(fused)} {dict(alone)}")
        self.assertGreater(after, before + least)
        for kind in "MatMul", "Gemm", "Conv":
            self.assertLessEqual(alone[kind], fused[kind])  # that are float
        self.assertFalse([k for k in alone if k in ("QLinearAdd", "QLinearMul", "QLinearSoftmax")], alone)

    @common.for_each("cnn", "unet", "relu6")
    def test_biases_are_corrected(self, name):
        plain = self.reached(name, self.quantized(name, "-placement=products", "-no-bias-correction"), "calib")
        self.assertGreater(self.reached(name, self.quantized(name, "-placement=products"), "calib"), plain + 0.5)


if __name__ == "__main__":
    unittest.main()
