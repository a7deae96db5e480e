#!/usr/bin/env python3
"""Where quantizers stand in onnxruntime: the default is nearer to the float model than quantizers wherever it has integers, its products are
integer as before, what stands between integers stays so, and biases are corrected all the same."""

import unittest
from collections import Counter

import numpy as np
import onnx

import common
import networks
from common import ROOT, OracleCase, qxc, run_samples, session, sqnr

MODELS = ROOT / "test/models"
PRODUCTS = ("MatMul", "Gemm", "Conv")
BETWEEN = ("QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSoftmax", "QLinearGlobalAveragePool")


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

    @common.for_each(("vit", 5.5, {"Conv": 1, "MatMul": 6}), ("charlm", 4.5, {"MatMul": 4}), ("cancer", 0.5, {}))
    def test_default_gains(self, case):
        """Products are MatMul and Gemm, which give floats: nothing stands between integers. Those of attention are float, and so is the
        first convolution of vit, which its residual sums begin with."""
        name, least, floats = case
        everywhere = self.quantized(name, "-placement=all")
        before, fused = self.reached(name, everywhere), self.fused(everywhere)
        there = self.quantized(name)
        after, alone = self.reached(name, there), self.fused(there)
        common.talk(f"{name}: {before:.2f} dB, by default {after:.2f} dB; {dict(fused)} {dict(alone)}")
        self.assertGreater(after, before + least)
        self.assertEqual(floats, {kind: alone[kind] for kind in PRODUCTS if alone[kind]})
        self.assertFalse([k for k in alone if k in BETWEEN], alone)

    def test_products_are_all_integer(self):
        for name in ("vit", "charlm"):
            fused = self.fused(self.quantized(name, "-placement=products"))
            self.assertFalse([kind for kind in PRODUCTS if fused[kind]], fused)

    @common.for_each("cnn", "unet", "relu6")
    def test_convolutions_stay_integer(self, name):
        """With all that stands between them, as with quantizers everywhere: so they are as fast."""
        everywhere, by_default = self.fused(self.quantized(name, "-placement=all")), self.fused(self.quantized(name))
        for kind in (*PRODUCTS, "DequantizeLinear", "QuantizeLinear"):
            self.assertLessEqual(by_default[kind], everywhere[kind], kind)
        for kind in BETWEEN:
            self.assertGreaterEqual(by_default[kind], everywhere[kind], kind)

    def test_detector(self):
        """What no integer operator reads is not rounded: the boxes of a distribution, sums and lists of SiLU."""
        model, samples = networks.detector()
        path, data, out = (self.scratch / n for n in ("detector.onnx", "data.npz", "q.onnx"))
        onnx.save(model, path)
        rows = samples(32, 5)
        np.savez(data, **{k: v[::2] for k, v in rows.items()})
        test = {k: v[1::2] for k, v in rows.items()}
        want, found = run_samples(session(path), model, test), {}
        for placement in ("auto", "all"):
            qxc(path, f"-calib={data}", f"-placement={placement}", "-emit=qdq", "-quiet", "-o", out)
            got = run_samples(session(out), model, test)
            found[placement] = min(sqnr(want[k], got[k]) for k in want), self.fused(out)["QLinearConv"]
        common.talk(f"detector: {found}")
        self.assertGreater(found["auto"][0], found["all"][0] + 5)
        self.assertGreaterEqual(found["auto"][1], found["all"][1])

    @common.for_each("-placement=auto", "-placement=products", "-placement=all")
    def test_biases_are_corrected(self, placement):
        for name in ("cnn", "unet", "relu6"):
            with self.subTest(name):
                plain = self.reached(name, self.quantized(name, placement, "-no-bias-correction"), "calib")
                self.assertGreater(self.reached(name, self.quantized(name, placement), "calib"), plain + 0.5)


if __name__ == "__main__":
    unittest.main()
