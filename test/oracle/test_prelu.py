"""PRelu with a slope for each channel on integers: `qxc run` and emitted C give what onnxruntime gives for
DequantizeLinear, PRelu, QuantizeLinear, bit for bit."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

BUILDS = {"plain": (), "portable": ("-U__SSE2__",), "sanitized": ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all")}
TYPES = {np.int8: T.INT8, np.uint8: T.UINT8}
CASES = {  # shape of x and of the slopes, types, zero point of x
    "channels": ((1, 5, 4, 6), (5, 1, 1), np.int8, np.int8, -7),
    "batch": ((3, 5, 2, 6), (1, 5, 1, 1), np.uint8, np.int8, 99),
    "columns": ((1, 3, 4, 6), (6,), np.int8, np.uint8, 20),
    "each": ((2, 3, 4), (3, 4), np.uint8, np.uint8, 128),
    "one_long": ((1, 3, 1, 6), (3, 1, 6), np.int8, np.int8, 3),
    "none_below": ((1, 5, 4, 6), (5, 1, 1), np.uint8, np.uint8, 0),
    "all_below": ((1, 5, 4, 6), (5, 1, 1), np.int8, np.int8, 127),
}


def quantized(nodes, inits, name, to, scale, zero, dtype):
    """Appends QuantizeLinear and DequantizeLinear of `name`; the result of the former is `to`_q."""
    inits += [numpy_helper.from_array(np.float32(scale), f"{to}_s"), numpy_helper.from_array(dtype(zero), f"{to}_z")]
    if name:
        nodes.append(helper.make_node("QuantizeLinear", [name, f"{to}_s", f"{to}_z"], [f"{to}_q"]))
    nodes.append(helper.make_node("DequantizeLinear", [f"{to}_q", f"{to}_s", f"{to}_z"], [to]))


def model(nodes, inits, x, y):
    nodes = nodes[:-1]  # the result stays quantized
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x_q", TYPES[x[0]], x[1])],
                              [helper.make_tensor_value_info("y_q", TYPES[y[0]], y[1])], inits)
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(made)
    return made


class PRelu(OracleCase):
    def compare(self, made, x, steps=0):
        path = self.scratch / "m.onnx"
        onnx.save(made, path)
        want = session(made).run(None, {"x_q": x})[0]
        have = qxc_outputs(path, {"x_q": x if x.shape[0] == 1 else x[None]}, self.scratch)["y_q"]
        self.assertLessEqual(np.abs(have.astype(int).ravel() - want.astype(int).ravel()).max(), steps)
        qxc(path, "-emit=c", "-integer-only", "-name=m", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
        for build, flags in BUILDS.items():
            with self.subTest(build=build):
                got = CModel(self.scratch / "m.c", "gcc", ("-O1", *flags)).run(x)[0]
                np.testing.assert_array_equal(got, have.ravel())

    @for_each(*CASES)
    def test_alone(self, name):
        shape, slopes, dtype, to, zero = CASES[name]
        rng, limits = np.random.default_rng(5), np.iinfo(dtype)
        slope = rng.normal(0, 0.7, slopes).astype(np.float32)
        nodes, inits = [], [numpy_helper.from_array(slope, "slope")]
        quantized(nodes, inits, None, "x", 0.02, zero, dtype)
        nodes.append(helper.make_node("PRelu", ["x", "slope"], ["r"]))
        quantized(nodes, inits, "r", "y", 0.011, 10, to)
        made = model(nodes, inits, (dtype, shape), (to, shape))
        for _ in range(4):
            x = rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
            self.compare(made, x)

    def test_between_convolutions(self):
        """Channels lie last there. The sums of Conv are rounded once here, in onnxruntime as float."""
        rng = np.random.default_rng(6)
        nodes, inits = [], [numpy_helper.from_array(rng.normal(0, 0.5, (24, 1, 1)).astype(np.float32), "slope")]
        quantized(nodes, inits, None, "x", 0.05, 3, np.int8)
        for i, (wide, deep) in enumerate(((24, 8), (16, 24))):
            w = rng.integers(-127, 128, (wide, deep, 3, 3)).astype(np.int8)
            inits += [numpy_helper.from_array(w, f"w{i}_q"), numpy_helper.from_array(np.float32(0.004), f"w{i}_s")]
            nodes.append(helper.make_node("DequantizeLinear", [f"w{i}_q", f"w{i}_s"], [f"w{i}"]))
        nodes.append(helper.make_node("Conv", ["x", "w0"], ["c"], pads=[1, 1, 1, 1]))
        quantized(nodes, inits, "c", "d", 0.2, -20, np.int8)
        nodes.append(helper.make_node("PRelu", ["d", "slope"], ["p"]))
        quantized(nodes, inits, "p", "e", 0.1, 30, np.int8)
        nodes.append(helper.make_node("Conv", ["e", "w1"], ["f"]))
        quantized(nodes, inits, "f", "y", 0.7, 0, np.int8)
        made = model(nodes, inits, (np.int8, (1, 8, 9, 7)), (np.int8, (1, 16, 7, 5)))
        for _ in range(4):
            self.compare(made, rng.integers(-128, 128, (1, 8, 9, 7)).astype(np.int8), steps=1)
        self.assertNotIn("transpose2d(", (self.scratch / "m.c").read_text().split("m_run(")[-1].split("lut8")[1])


if __name__ == "__main__":
    unittest.main()
