#!/usr/bin/env python3
"""Models that ONNX's rules read strictly would refuse, and onnxruntime writes or loads.

They read, run as in onnxruntime (or as ONNX defines), are quantized and emitted.
"""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, session

FLOAT, INT8 = TensorProto.FLOAT, TensorProto.INT8
info = helper.make_tensor_value_info


def save(path, nodes, inputs, outputs, constants, imports, ir=8):
    graph = helper.make_graph(nodes, "g", inputs, outputs,
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*i) for i in imports], ir_version=ir)
    onnx.save(model, path)
    return model


class Accepted(OracleCase):
    def setUp(self):
        self.path = self.scratch / "model.onnx"
        self.rng = np.random.default_rng(5)

    def run_qxc(self, path, **arrays):
        np.savez(self.scratch / "in.npz", **{k: v[None] for k, v in arrays.items()})
        qxc("run", path, f"-input={self.scratch / 'in.npz'}", "-o", self.scratch / "out.npz", "-quiet")
        return np.load(self.scratch / "out.npz")["y"][0]

    def emits(self, options, rtol, *given):
        """QDQ and QOperator models load and compute about the same; C is written."""
        for emit in ("qdq", "qop"):
            qxc(self.path, f"-emit={emit}", *options, "-quiet", "-o", self.scratch / "q.onnx")
            got = session(self.scratch / "q.onnx").run(None, given[0])[0]
            self.assertLessEqual(np.abs(got.astype(float) - given[1].astype(float)).max(), rtol)
        qxc(self.path, "-emit=c", *options, "-quiet", "-o", self.scratch / "q.c")

    @for_each(7, 11, 13, 16)
    def test_layer_normalization(self, opset):
        x = self.rng.standard_normal([2, 4, 16]).astype(np.float32)
        constants = {"s": self.rng.standard_normal(16).astype(np.float32),
                     "b": self.rng.standard_normal(16).astype(np.float32),
                     "w": self.rng.standard_normal([16, 8]).astype(np.float32)}
        nodes = [helper.make_node("LayerNormalization", ["x", "s", "b"], ["n"], axis=-1),
                 helper.make_node("MatMul", ["n", "w"], ["y"])]
        model = save(self.path, nodes, [info("x", FLOAT, [2, 4, 16])], [info("y", FLOAT, [2, 4, 8])],
                     constants, [("", opset)])
        want = session(model).run(None, {"x": x})[0]
        np.testing.assert_allclose(self.run_qxc(self.path, x=x), want, rtol=1e-4, atol=1e-5)
        np.savez(self.scratch / "calib.npz", x=x[None])
        self.emits([f"-calib={self.scratch / 'calib.npz'}"], 0.3, {"x": x}, want)

    def test_microsoft_alone(self):
        a, b = (self.rng.integers(-128, 128, [2, 6], np.int8) for _ in range(2))
        constants = {"s": np.float32(0.1), "t": np.float32(0.2), "z": np.int8(3)}
        node = helper.make_node("QLinearAdd", ["a", "s", "z", "b", "s", "z", "t", "z"], ["y"],
                                domain="com.microsoft")
        model = save(self.path, [node], [info("a", INT8, [2, 6]), info("b", INT8, [2, 6])],
                     [info("y", INT8, [2, 6])], constants, [("com.microsoft", 1)])
        want = session(model).run(None, {"a": a, "b": b})[0]
        self.assertLessEqual(np.abs(self.run_qxc(self.path, a=a, b=b).astype(int) - want).max(), 1)
        self.emits([], 1, {"a": a, "b": b}, want)

    @for_each("matmul", "rows")
    def test_half_scales(self, name):
        """onnxruntime has no kernel for float16 scales: as ONNX defines it."""
        a, b = self.rng.integers(-128, 128, [2, 4], np.int8), self.rng.integers(-128, 128, [4, 3], np.int8)
        sb = np.float16(0.00705) if name == "matmul" else np.array([0.007, 0.01, 0.004], np.float16)
        constants = {"as": np.float16(0.0066), "bs": sb, "ys": np.float16(0.0107), "z": np.int8(2)}
        node = helper.make_node("QLinearMatMul", ["a", "as", "z", "b", "bs", "z", "ys", "z"], ["y"])
        save(self.path, [node], [info("a", INT8, [2, 4]), info("b", INT8, [4, 3])],
             [info("y", INT8, [2, 3])], constants, [("", 21)], 10)
        sums = (a.astype(np.int32) - 2) @ (b.astype(np.int32) - 2)
        real = sums * (np.float64(np.float16(0.0066)) * sb.astype(float) / float(np.float16(0.0107)))
        want = np.clip(np.rint(real) + 2, -128, 127).astype(np.int8)
        self.assertLessEqual(np.abs(self.run_qxc(self.path, a=a, b=b).astype(int) - want).max(), 1)
        self.emits([], 1, {"a": a, "b": b}, want)

    @for_each(18, 20)
    def test_group_normalization(self, opset):
        """A scale a channel, as opset 21 has it, and as exporters wrote it before."""
        x = self.rng.standard_normal([2, 6, 3, 2]).astype(np.float32)
        constants = {"s": self.rng.standard_normal(6).astype(np.float32),
                     "b": self.rng.standard_normal(6).astype(np.float32)}
        results = []
        for version in (opset, 21):
            node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
            model = save(self.path, [node], [info("x", FLOAT, x.shape)], [info("y", FLOAT, x.shape)],
                         constants, [("", version)], 10)
            results.append(self.run_qxc(self.path, x=x))
        np.testing.assert_array_equal(*results)
        np.testing.assert_allclose(results[0], session(model).run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
        save(self.path, [node], [info("x", FLOAT, x.shape)], [info("y", FLOAT, x.shape)], constants,
             [("", opset)], 10)
        self.emits(["-calib-random=1", "-target-opset=21"], 5, {"x": x}, results[0])

    def test_inputs_with_defaults(self):
        x, y = np.array([[1.0, -2.0]], np.float32), np.array([[0.5], [0.25]], np.float32)
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        save(self.path, [node], [info("x", FLOAT, [1, 2]), info("w", FLOAT, [2, 1])],
             [info("y", FLOAT, [1, 1])], {"x": x, "w": y}, [("", 13)])
        qxc("run", self.path, "-o", self.scratch / "out.npz", "-quiet")
        np.testing.assert_array_equal(np.load(self.scratch / "out.npz")["y"].reshape(1, 1), x @ y)
        qxc("compare", self.path, self.path)


if __name__ == "__main__":
    unittest.main()
