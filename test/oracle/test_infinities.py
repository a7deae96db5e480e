"""Infinities and NaN in float operators: where onnxruntime has them, qxc has them, and nowhere else.

Packed operands are filled up with zeros, sums carry rounding errors along: both would make NaN of an infinity.
Left out is where onnxruntime contradicts ONNX: ReduceMax and ReduceMin of NaN, and LRN, whose running sum keeps an
infinity that has left the window. What pools make of NaN is held in test_pool_nan.py.
"""

import itertools
import unittest

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from common import OracleCase, for_each, qxc

INFINITE = ((np.inf,), (-np.inf,), (np.inf, -np.inf))
SPECIAL = (*INFINITE, (np.nan,))
node = helper.make_node


class Case:
    """A node with its inputs, of which `x` and with `all_inputs` the others get the special numbers."""

    def __init__(self, op, inputs, constants=None, all_inputs=False, opset=20, special=SPECIAL, **attributes):
        self.inputs, self.constants, self.all_inputs, self.special = inputs, constants or {}, all_inputs, special
        graph = helper.make_graph(
            [node(op, [*inputs, *self.constants], ["y"], **attributes)], op,
            [helper.make_tensor_value_info(k, onnx.TensorProto.FLOAT, v) for k, v in inputs.items()],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, k) for k, v in self.constants.items()])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        self.text = f"{op} {inputs} {attributes}"

    def data(self, rng, special):
        made = {}
        for name, shape in self.inputs.items():
            made[name] = rng.standard_normal(shape).astype(np.float32)
            if name == "x" or self.all_inputs:
                made[name].flat[rng.integers(made[name].size, size=len(special))] = special
        return made


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def products():
    for m, k, n in ((3, 20, 5), (1, 40, 16), (8, 33, 40), (5, 300, 17)):
        yield Case("MatMul", {"x": (m, k)}, {"w": floats(k, n)})
        yield Case("MatMul", {"x": (m, k), "w": (k, n)}, all_inputs=True)
        for a, b in itertools.product((0, 1), (0, 1)):
            yield Case("Gemm", {"x": (k, m) if a else (m, k)},
                       {"w": floats(n, k) if b else floats(k, n), "b": floats(n)}, transA=a, transB=b)
    yield Case("Gemm", {"x": (4, 20)}, {"w": floats(20, 16), "b": np.full(16, np.inf, np.float32)}, beta=0.0)
    yield Case("Einsum", {"x": (5, 40), "w": (40, 4)}, all_inputs=True, equation="ij,jk->ik")


def convolutions():
    windows = ((3, 1, 1, 1), (5, 1, 1, 0), (5, 2, 1, 2), (3, 1, 2, 2), (1, 1, 1, 0))
    for (ic, oc, group), (k, stride, dilation, pad) in itertools.product(
            ((4, 8, 1), (16, 32, 1), (8, 8, 8), (8, 16, 8), (6, 12, 3), (4, 4, 2)), windows):
        yield Case("Conv", {"x": (1, ic, 9, 9)}, {"w": floats(oc, ic // group, k, k), "b": floats(oc)}, group=group,
                   strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4)
    yield Case("Conv", {"x": (1, 8, 9, 9), "w": (16, 8, 3, 3)}, all_inputs=True, pads=[1] * 4)
    yield Case("Conv", {"x": (1, 8, 20)}, {"w": floats(16, 8, 3)}, pads=[1, 1])
    for group in (1, 4):
        yield Case("Conv", {"x": (1, 4, 5, 6, 7)}, {"w": floats(8, 4 // group, 3, 3, 3)}, pads=[1] * 6, group=group)
    for (ic, oc, group), stride in itertools.product(((4, 8, 1), (8, 8, 8), (8, 8, 2)), (1, 2)):
        yield Case("ConvTranspose", {"x": (1, ic, 6, 6)}, {"w": floats(ic, oc // group, 3, 3), "b": floats(oc)},
                   group=group, strides=[stride] * 2, pads=[1] * 4)


def others():
    for op, special in (("Average", SPECIAL), ("Max", INFINITE)):
        for pad in (0, 1):
            yield Case(f"{op}Pool", {"x": (1, 4, 9, 9)}, opset=18, special=special, kernel_shape=[3, 3], strides=[2, 2],
                       pads=[pad] * 4)
        yield Case(f"Global{op}Pool", {"x": (1, 4, 9, 9)}, special=special)
    for op in ("Softmax", "LogSoftmax"):
        yield Case(op, {"x": (5, 9)}, axis=-1)
    for op in ("Relu LeakyRelu Elu Selu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Exp Log Sqrt Erf Abs "
               "Floor Round Reciprocal Sin Gelu Mish").split():
        yield Case(op, {"x": (5, 9)})
    for op in "Add Sub Mul Div Min Max Pow".split():
        yield Case(op, {"x": (5, 9), "z": (5, 9)}, all_inputs=True)
    for op in "ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare".split():
        yield Case(op, {"x": (5, 40)}, {"axes": np.array([1])})
    yield Case("LayerNormalization", {"x": (5, 9)}, {"s": floats(9), "b": floats(9)})
    yield Case("InstanceNormalization", {"x": (1, 3, 9)}, {"s": floats(3), "b": floats(3)})
    yield Case("CumSum", {"x": (5, 9)}, {"axis": np.int64(1)})


GROUPS = {"products": products, "convolutions": convolutions, "others": others}


def kinds(v):
    """Whether elements are finite, NaN, and which infinity."""
    return np.where(np.isnan(v), 2, np.isinf(v) * np.sign(v, where=~np.isnan(v), out=np.zeros_like(v)))


class Infinities(OracleCase):
    @for_each(*GROUPS)
    def test(self, group):
        model, x, y = (self.scratch / n for n in ("m.onnx", "x.npz", "y.npz"))
        rng, options = np.random.default_rng(0), ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        for case in GROUPS[group]():
            onnx.save(case.model, model)
            session = ort.InferenceSession(str(model), options)
            samples = [case.data(rng, s) for s in case.special]
            np.savez(x, **{k: np.stack([s[k] for s in samples]) for k in case.inputs})
            qxc("run", model, f"-input={x}", "-o", y, "-quiet")
            for sample, have in zip(samples, np.load(y)["y"]):
                want = session.run(None, sample)[0]
                np.testing.assert_array_equal(kinds(have.reshape(want.shape)), kinds(want), case.text)


if __name__ == "__main__":
    unittest.main()
