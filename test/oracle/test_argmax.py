"""ArgMax at the end of a classifier is computed on integers: behind a quantized Softmax, a float one, or none.
`qxc run`, emitted C with -integer-only and onnxruntime name the same class."""

import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

CLASSES, SAMPLES = 12, 60
ENDS = {  # nodes behind the logits, and whether each result is quantized
    "alone": [("ArgMax", {"axis": 1}, False)],
    "least": [("ArgMin", {"axis": -1, "keepdims": 0}, False)],
    "last": [("ArgMax", {"axis": 1, "select_last_index": 1}, False)],
    "softmax": [("Softmax", {"axis": 1}, True), ("ArgMax", {"axis": 1}, False)],
    "float_softmax": [("Softmax", {"axis": -1}, False), ("ArgMax", {"axis": 1}, False)],
    "float_logsoftmax": [("LogSoftmax", {"axis": 1}, False), ("ArgMax", {"axis": 1, "keepdims": 0}, False)],
}
OTHERS = {  # where order is not that of the integers read, or not along the axis
    "softmax_of_rows": [("Softmax", {"axis": 0}, False), ("ArgMax", {"axis": 1}, False)],
    "least_softmax": [("Softmax", {"axis": 1}, False), ("ArgMin", {"axis": 1}, False)],
}


class Built:
    def __init__(self):
        self.rng = np.random.default_rng(4)
        self.nodes, self.inits = [], []

    def const(self, name, array):
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def pair(self, x, scale, zero):
        at = [self.const(f"{x}_s", np.float32(scale)), self.const(f"{x}_z", np.int8(zero))]
        self.node("QuantizeLinear", [x, *at], f"{x}_q")
        return self.node("DequantizeLinear", [f"{x}_q", *at], f"{x}_d")

    def classifier(self, ends):
        w = [self.const("w_q", self.rng.integers(-127, 128, (20, CLASSES)).astype(np.int8)),
             self.const("w_s", np.float32(0.01)), self.const("w_z", np.int8(0))]
        self.node("DequantizeLinear", w, "w")
        x = self.pair(self.node("MatMul", [self.pair("x", 0.02, 5), "w"], "logits"), 0.11, -9)
        for i, (op, attributes, quantized) in enumerate(ends):
            x = self.node(op, [x], f"y{i}" if i < len(ends) - 1 else "y", **attributes)
            x = self.pair(x, 1 / 256, -128) if quantized else x
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, (1, 20))],
                                  [helper.make_tensor_value_info("y", T.INT64, None)], self.inits)
        made = onnx.shape_inference.infer_shapes(
            helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))
        onnx.checker.check_model(made)
        return made, self.rng.normal(0, 1, (SAMPLES, 20)).astype(np.float32)


class ArgMax(OracleCase):
    def build(self, ends):
        made, x = Built().classifier(ends)
        self.path = self.scratch / "m.onnx"
        onnx.save(made, self.path)
        runner = session(made)
        return x, np.array([runner.run(None, {"x": row[None]})[0].ravel() for row in x])

    def emitted(self, x, *options):
        qxc(self.path, "-emit=c", "-name=m", "-no-sync", "-quiet", "-o", self.scratch / "m.c", *options)
        model = CModel(self.scratch / "m.c", "gcc", ("-O1",))
        if "-integer-only" in options:
            x = np.clip(np.rint(x / np.float32(0.02)) + 5, -128, 127).astype(np.int8)
        return np.array([model.run(row)[0] for row in x])

    @for_each(*ENDS)
    def test_integer_only(self, name):
        x, want = self.build(ENDS[name])
        have = qxc_outputs(self.path, {"x": x}, self.scratch)["y"].reshape(want.shape)
        for got in (self.emitted(x), self.emitted(x, "-integer-only")):
            np.testing.assert_array_equal(got, have)
        text = (self.scratch / "m.c").read_text()
        self.assertIsNone(re.search(r"\b(float|double)\b", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
        away = (have != want).sum()  # a step of the softmax may decide a tie
        self.assertLessEqual(away, SAMPLES // 20 if name == "softmax" else 0)
        self.assertGreater(len(np.unique(want)), CLASSES // 2)

    @for_each(*OTHERS)
    def test_what_must_stay(self, name):
        x, want = self.build(OTHERS[name])
        np.testing.assert_array_equal(self.emitted(x), want)
        done = qxc(self.path, "-emit=c", "-integer-only", "-o", self.scratch / "m.c", ok=False)
        self.assertEqual(1, done.returncode)

    def test_quantized_here(self):
        """A float classifier with calibration data."""
        rng = np.random.default_rng(8)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["l"]), helper.make_node("Softmax", ["l"], ["p"]),
                 helper.make_node("ArgMax", ["p"], ["y"], axis=1)]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, (1, 20))],
                                  [helper.make_tensor_value_info("y", T.INT64, (1, 1))],
                                  [numpy_helper.from_array(rng.normal(0, 1, (20, 5)).astype(np.float32), "w")])
        self.path = self.scratch / "m.onnx"
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), self.path)
        x = rng.normal(0, 1, (SAMPLES, 20)).astype(np.float32)
        np.savez(self.scratch / "calib.npz", x=x)
        data = f"-calib={self.scratch / 'calib.npz'}"
        qxc(self.path, data, "-integer-only", "-emit=c", "-name=m", "-quiet", "-no-sync", "-o", self.scratch / "m.c")
        self.assertNotIn("float", re.sub(r"/\*.*?\*/", "", (self.scratch / "m.c").read_text(), flags=re.S))
        want = session(self.path).run(None, {"x": x[:1]})[0]
        np.testing.assert_array_equal(self.emitted(x[:1], data)[0], want.ravel())


if __name__ == "__main__":
    unittest.main()
