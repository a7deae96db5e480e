#!/usr/bin/env python3
"""Weights of few bits whose scales and integers are improved in turn with data (passes/quantize/refine.c), against the
same in numpy, and where they have to stay as they are."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc

K, N, BLOCK, SAMPLES = 64, 24, 32, 240
DAMPING = 0.01  # of the mean of G's diagonal


def rounded(x, scale, zp, levels):
    """Integers less their zero point."""
    return np.clip(np.rint(x / scale) + zp, 0, levels - 1) - zp


def babai(w, scale, zp, g, levels):
    """What GPTQ does: from the number that varies most to the least, each makes up for those before."""
    order = np.argsort(np.diag(g), kind="stable")
    lower = np.linalg.cholesky(g[np.ix_(order, order)])
    q, asked = np.zeros_like(w), np.zeros_like(w)
    for i in range(len(w))[::-1]:
        at = order[i]
        q[at] = rounded(w[at] + asked[i] / lower[i, i], scale[at], zp[at], levels)
        asked[:i] += np.outer(lower[i, :i], w[at] - q[at] * scale[at])
    return q


def refined(w, q, scale, zp, g, levels, rounds=3):
    q, scale = q.copy(), scale.copy()
    for once in [True] * rounds + [False]:
        for b in range(0, len(w), BLOCK):
            at = slice(b, b + BLOCK)
            left = g[at] @ (w - q * scale)
            square = np.einsum("ic,ij,jc->c", q[at], g[at, at], q[at])
            scale[at] += np.divide((q[at] * left).sum(axis=0), square, out=np.zeros_like(square), where=square > 0)
            for i in range(b, b + BLOCK) if once else ():
                step = g[i] @ (w - q * scale) / (g[i, i] * scale[i])
                q[i] = np.clip(np.rint(q[i] + step), -zp[i], levels - 1 - zp[i])
    return q, scale


def error(w, got, g):
    return np.einsum("ic,ij,jc->", w - got, g, w - got)


class Refined(OracleCase):
    def setUp(self):
        rng = np.random.default_rng(5)
        self.w = (rng.standard_normal((K, N)) * 0.2).astype(np.float32)
        mixed = rng.standard_normal((12, K)) * rng.uniform(0.2, 2, K)
        self.x = (rng.standard_normal((SAMPLES, 1, 12)) @ mixed + rng.standard_normal((SAMPLES, 1, K))).astype(np.float32)

    def made(self, weights, *options, samples=SAMPLES, calib=True):
        """Integers, scales and zero points as they are stored."""
        model, data, out = (self.scratch / name for name in ("m.onnx", "x.npz", "q.onnx"))
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "product")], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, K])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, N])],
                                  [numpy_helper.from_array(self.w, "w")])
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), model)
        np.savez(data, x=self.x[:samples])
        qxc(model, "-weight-only", f"-weights={weights}", *([f"-calib={data}"] if calib else []), "-emit=qdq", "-no-sync", "-o", out,
            *options)
        stored = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(out).graph.initializer}
        node = next(n for n in onnx.load(out).graph.node if n.op_type == "DequantizeLinear")
        q, scale = (stored[i] for i in node.input[:2])
        return q, scale, stored[node.input[2]] if len(node.input) > 2 else np.zeros_like(scale)

    @for_each("2", "3", "4")
    def test_as_numpy(self, bits):
        """Of the samples all but every eighth; scales and zero points at first are those without data."""
        levels, low = 1 << int(bits), -(1 << int(bits) - 1)
        wide = lambda a: np.repeat(a, BLOCK, axis=0)  # noqa: E731
        _, scale, zp = (a if i == 0 else wide(a) for i, a in enumerate(self.made(f"int{bits} block(32)", calib=False)))
        x, w = self.x[np.arange(SAMPLES) % 8 != 7, 0].astype(np.float64), self.w.astype(np.float64)
        g = x.T @ x / len(x)
        g += DAMPING * np.trace(g) / K * np.eye(K)
        first = babai(w, scale, zp - low, g, levels)
        want, suited = refined(w, first, scale, zp - low, g, levels)
        q, scales, zps = self.made(f"int{bits} block(32)")
        np.testing.assert_array_equal(wide(zps), zp)
        ours = error(w, (q - wide(zps)) * wide(scales), g)
        self.assertLess(ours, 1.001 * error(w, want * suited, g))
        self.assertLess(ours, 0.93 * error(w, first * scale, g))
        self.assertLess(np.abs(wide(scales) / suited - 1).max(), 1e-4)
        np.testing.assert_array_equal(q - wide(zps), want)

    @for_each("pow2", "few samples", "asked for")
    def test_scales_that_stay(self, case):
        """Powers of two; scales that nothing was set aside to judge by; those that somebody has stated."""
        weights, options, samples = "int4 sym block(32)", [], SAMPLES
        _, plain, _ = self.made(weights, calib=False)
        if case == "pow2":
            weights += " pow2"
            _, plain, _ = self.made(weights, calib=False)
        elif case == "few samples":
            samples = 7
        else:
            text = ", ".join(f"{s:.9g}" for s in plain.ravel())
            scheme = self.scratch / "s.scheme"
            scheme.write_text(f'scheme {{ value "w" int4q<[{text}], 0, axis=[0, 1], block=[32, 1]> }}\n')
            weights, options = "int8 sym", [f"-scheme={scheme}"]
        q, scale, _ = self.made(weights, *options, samples=samples)
        np.testing.assert_array_equal(plain, scale)
        self.assertTrue((q != np.clip(np.rint(self.w / np.repeat(plain, BLOCK, axis=0)), -8, 7)).any())  # rounded with data all the same
        self.assertTrue((self.made("int4 sym block(32)")[1] != plain).any())  # as they do else

    def test_what_does_not_hold_elsewhere_is_left(self):
        """Samples that are set aside are of another kind: what suits the others is not taken."""
        self.x[:, 0] = np.random.default_rng(1).standard_normal((SAMPLES, K))
        calm = np.arange(SAMPLES) % 8 == 7
        self.x[~calm, 0, : K // 2] *= 1e-3
        self.x[calm, 0, K // 2:] *= 1e-3
        q, scale, zp = self.made("int4 block(32)")
        plain = self.made("int4 block(32)", calib=False)
        for got, want in zip((q, scale, zp), plain, strict=True):
            np.testing.assert_array_equal(got, want)


if __name__ == "__main__":
    unittest.main()
