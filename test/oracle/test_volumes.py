"""Conv, ConvTranspose and pools of three spatial dimensions, and MaxPool with its indices: float against
onnxruntime, quantized against what onnxruntime makes of the QDQ file, within a step where sums end on a tie.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, qxc, qxc_outputs, session

SHAPE = (2, 4, 5, 6, 7)
CONVS = {
    "plain": ({}, (3, 4, 2, 3, 3), False),
    "padded": ({"pads": [2, 1, 0, 1, 1, 2], "strides": [2, 1, 3]}, (3, 4, 3, 3, 2), True),
    "dilated": ({"dilations": [2, 1, 2], "pads": [3] * 6, "strides": [3, 2, 1]}, (6, 4, 2, 2, 3), True),
    "depthwise": ({"group": 4, "auto_pad": "SAME_UPPER"}, (8, 1, 3, 3, 3), True),
    "grouped_point": ({"group": 2}, (6, 2, 1, 1, 1), True),
    "beyond_the_edge": ({"pads": [4, 0, 0, 4, 0, 0], "strides": [4, 1, 1]}, (2, 4, 2, 1, 1), True),
}
TRANSPOSED = {
    "plain": ({}, (4, 3, 2, 3, 3), False),
    "strided": ({"strides": [2, 3, 2], "pads": [1, 0, 1, 0, 1, 1], "output_padding": [1, 0, 1]}, (4, 3, 3, 3, 2), True),
    "dilated": ({"dilations": [2, 1, 2], "strides": [3, 1, 1]}, (4, 2, 2, 2, 3), True),
    "grouped": ({"group": 2, "strides": [4, 1, 2]}, (4, 3, 2, 1, 2), True),
}
POOLS = {
    "max": ("MaxPool", {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "pads": [1, 1, 0, 0, 1, 1]}),
    "max_ceil": ("MaxPool", {"kernel_shape": [3, 2, 2], "strides": [2, 2, 3], "dilations": [2, 1, 1], "ceil_mode": 1}),
    "average": ("AveragePool", {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "pads": [1, 1, 0, 0, 1, 1]}),
    "average_padding": ("AveragePool", {"kernel_shape": [3, 2, 2], "strides": [2, 2, 1], "pads": [1, 1, 1, 2, 0, 1],
                                        "count_include_pad": 1}),
    "norm": ("LpPool", {"kernel_shape": [2, 3, 2], "strides": [2, 1, 2], "pads": [1, 1, 0, 0, 1, 1]}),
    "norm_of_1": ("LpPool", {"kernel_shape": [3, 2, 2], "strides": [2, 2, 3], "dilations": [2, 1, 1], "p": 1}),
    "norm_ceil": ("LpPool", {"kernel_shape": [3, 2, 2], "strides": [2, 3, 2], "ceil_mode": 1, "p": 3}),
    "norm_same": ("LpPool", {"kernel_shape": [3, 2, 4], "strides": [1, 2, 3], "auto_pad": "SAME_LOWER"}),
    "norm_of_all": ("GlobalLpPool", {"p": 1}),
    "norm_of_all_2": ("GlobalLpPool", {}),
}
INDICES = {
    "row": ((1, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
    "plane": ((2, 3, 7, 6), {"kernel_shape": [3, 2], "pads": [1, 1, 2, 0], "dilations": [2, 1]}),
    "plane_by_columns": ((2, 3, 7, 6), {"kernel_shape": [2, 2], "strides": [2, 2], "storage_order": 1}),
    "volume": (SHAPE, {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2], "pads": [1, 0, 1, 0, 1, 0]}),
    "volume_by_columns": (SHAPE, {"kernel_shape": [2, 2, 3], "strides": [2, 1, 2], "pads": [0, 1, 1, 1, 0, 1], "storage_order": 1}),
}


def model(op, shape, attributes, weights=None, biased=False, outputs=("y",)):
    rng = np.random.default_rng(1)
    constants = {}
    if weights:
        constants["w"] = rng.normal(0, 0.3, weights).astype(np.float32)
    if biased:
        channels = weights[0] if op == "Conv" else weights[1] * attributes.get("group", 1)
        constants["b"] = rng.normal(0, 0.5, channels).astype(np.float32)
    kinds = [TensorProto.FLOAT, TensorProto.INT64]
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *constants], [*outputs], **attributes)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(o, k, None) for o, k in zip(outputs, kinds)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()])
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    return onnx.shape_inference.infer_shapes(made)


class Volumes(OracleCase):
    def same_in_c(self, path, x):
        source = path.with_suffix(".c")
        qxc(path, "-emit=c", "-no-sync", "-o", source)
        made = CModel(source)
        want = qxc_outputs(path, {"x": x}, self.scratch)["y"]
        for sample, y in zip(x, want):
            np.testing.assert_allclose(made.run(sample)[0], y.ravel(), rtol=1e-5, atol=1e-5)

    def check(self, made, step=0.02):
        path, data, quantized = (self.scratch / n for n in ("m.onnx", "x.npz", "q.onnx"))
        onnx.save(made, path)
        x = np.random.default_rng(2).normal(0, 1, (3, *SHAPE)).astype(np.float32)
        want = np.stack([session(made).run(None, {"x": v})[0] for v in x])
        np.testing.assert_allclose(qxc_outputs(path, {"x": x}, self.scratch)["y"], want, rtol=1e-5, atol=1e-5)
        self.same_in_c(path, x)
        np.savez(data, x=x)
        for options in ((), ("-activations=int16", "-weights=int8"), ("-per-tensor", "-weights=uint8")):
            with self.subTest(options=options):
                qxc(path, f"-calib={data}", "-emit=qdq", "-placement=all", *options, "-no-sync", "-o", quantized)
                got = qxc_outputs(quantized, {"x": x}, self.scratch)["y"]
                for optimize in (False, True):
                    run = session(quantized, optimize)
                    there = np.stack([run.run(None, {"x": v})[0] for v in x])
                    apart = np.abs(got - there)
                    self.assertLess(apart.max(), np.ptp(want) / 200)
                    self.assertLess((apart > 1e-6).mean(), 0.01)
                self.assertLess(np.abs(got - want).max(), np.ptp(want) * step)
        self.same_in_c(quantized, x)

    @for_each(*CONVS)
    def test_conv(self, name):
        attributes, weights, biased = CONVS[name]
        self.check(model("Conv", SHAPE, attributes, weights, biased))

    @for_each(*TRANSPOSED)
    def test_convtranspose(self, name):
        attributes, weights, biased = TRANSPOSED[name]
        self.check(model("ConvTranspose", SHAPE, attributes, weights, biased))

    @for_each(*POOLS)
    def test_pool(self, name):
        self.check(model(POOLS[name][0], SHAPE, POOLS[name][1]))

    @for_each(*INDICES)
    def test_indices(self, name):
        shape, attributes = INDICES[name]
        made = model("MaxPool", shape, attributes, outputs=("y", "at"))
        path = self.scratch / "i.onnx"
        onnx.save(made, path)
        x = np.random.default_rng(3).integers(0, 6, shape).astype(np.float32)  # many that are equal
        got = qxc_outputs(path, {"x": x[None] if shape[0] > 1 else x}, self.scratch)
        for value, want in zip(("y", "at"), session(made).run(None, {"x": x})):
            np.testing.assert_array_equal(got[value].reshape(want.shape), want)


if __name__ == "__main__":
    import unittest
    unittest.main()
