"""Random float models: `qxc run` against onnxruntime, then quantized, in all three forms.

Activations of 16 bits keep what quantization loses far below what a wrong rewrite does (a constant
folded along the wrong axis, a bias scaled twice). Models depend on their seed alone; slow machines
try fewer of them.
"""

import random
import unittest
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import OracleCase, float_excess, qxc, qxc_outputs, run_samples, session, sqnr

MODELS, SECONDS, SAMPLES = 300, 20, 4
LEAST_DB = 20
INPUT = (2, 2, 4, 4)


class Value(NamedTuple):
    name: str
    shape: tuple


class RandomNet:
    def __init__(self, seed):
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.nodes, self.constants, self.values = [], [], [Value("x", INPUT)]
        layers = [self.conv, self.conv, self.batchnorm, self.with_constant, self.with_constant,
                  self.binary, self.clamp, self.pool, self.concat, self.transpose, self.sigmoid,
                  self.dense, self.dense]
        for _ in range(self.pick.randint(2, 8)):
            x = self.pick.choice(self.values[-3:])
            self.values.append(self.pick.choice(layers)(x))
        computed = self.values[1:]
        self.outputs = list(dict.fromkeys(
            [computed[-1], self.pick.choice(computed), self.pick.choice(computed)]))

    def node(self, op, operands, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape):
        return self.rng.normal(0, 1, shape).astype(np.float32)

    def away_from_zero(self, *shape):
        """Numbers of one sign mostly, so that nothing is divided by almost nothing."""
        values = self.normal(*shape) / 4 + self.pick.choice([-2, 2])
        return np.asarray(values, np.float32)

    def conv(self, x):
        channels, out = x.shape[1], self.pick.choice([1, 2, 3])
        operands = [x.name, self.constant(self.normal(out, channels, 1, 1))]
        if self.pick.random() < 0.5:
            operands.append(self.constant(self.normal(out)))
        return Value(self.node("Conv", operands), (x.shape[0], out, *x.shape[2:]))

    def batchnorm(self, x):
        rows = [np.abs(self.normal(x.shape[1])) + np.float32(0.3) for _ in range(4)]
        return Value(self.node("BatchNormalization", [x.name, *map(self.constant, rows)]), x.shape)

    def with_constant(self, x):
        """Arithmetic with a constant that broadcasts along some of the axes."""
        n, c, h, w = x.shape
        shape = self.pick.choice([(1, c, 1, 1), (c, 1, 1), (1,), (), (n, 1, 1, 1), (1, 1, 1, w),
                                  (1, c, h, 1)])
        operands = [x.name, self.constant(self.away_from_zero(*shape))]
        op = self.pick.choice(["Mul", "Add", "Sub", "Div"])
        if op != "Div" and self.pick.random() < 0.4:
            operands.reverse()
        return Value(self.node(op, operands), x.shape)

    def binary(self, x):
        other = self.pick.choice([v for v in self.values if v.shape == x.shape])
        return Value(self.node(self.pick.choice(["Add", "Mul"]), [x.name, other.name]), x.shape)

    def clamp(self, x):
        if self.pick.random() < 0.5:
            return Value(self.node("Relu", [x.name]), x.shape)
        bounds = [np.float32(self.pick.choice(b)) for b in ([-1, 0, 0.3], [1, 3, 6])]
        return Value(self.node("Clip", [x.name, *map(self.constant, bounds)]), x.shape)

    def pool(self, x):
        if min(x.shape[2:]) < 2 or self.pick.random() < 0.5:
            return Value(self.node("GlobalAveragePool", [x.name]), (*x.shape[:2], 1, 1))
        return Value(self.node("MaxPool", [x.name], kernel_shape=[2, 2]),
                     (*x.shape[:2], x.shape[2] - 1, x.shape[3] - 1))

    def concat(self, x):
        return Value(self.node("Concat", [x.name, x.name], axis=1),
                     (x.shape[0], 2 * x.shape[1], *x.shape[2:]))

    def transpose(self, x):
        return Value(self.node("Transpose", [x.name], perm=[0, 1, 3, 2]),
                     (*x.shape[:2], x.shape[3], x.shape[2]))

    def sigmoid(self, x):
        return Value(self.node("Sigmoid", [x.name]), x.shape)

    def dense(self, x):
        """Gemm or MatMul, perhaps with arithmetic behind it, back in four dimensions."""
        weights = self.constant(self.normal(int(np.prod(x.shape[1:])), 2) / 4)
        operands = [self.node("Flatten", [x.name]), weights]
        if self.pick.random() < 0.5:
            y = self.node("MatMul", operands)
        else:
            if self.pick.random() < 0.5:
                shape = self.pick.choice([(2,), (1,), (), (1, 2), (1, 1)])
                operands.append(self.constant(np.asarray(self.normal(*shape), np.float32)))
            y = self.node("Gemm", operands, alpha=self.pick.choice([1.0, 0.5]),
                          beta=self.pick.choice([1.0, 2.0, 0.0]))
        if self.pick.random() < 0.5:
            shape = self.pick.choice([(2,), (1, 2), (2, 1), (1,)])
            y = self.node(self.pick.choice(["Mul", "Add"]),
                          [y, self.constant(self.away_from_zero(*shape))])
        shape = (INPUT[0], 2, 1, 1)
        return Value(self.node("Reshape", [y, self.constant(np.array(shape))]), shape)

    def model(self):
        def info(v):
            return helper.make_tensor_value_info(v.name, onnx.TensorProto.FLOAT, v.shape)

        graph = helper.make_graph(self.nodes, "net", [info(self.values[0])],
                                  [info(v) for v in self.outputs], self.constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


class RandomModels(OracleCase):
    expected_seconds = 20

    def check_float(self, want, got):
        for name, reference in want.items():
            self.assertLessEqual(float_excess(got[name], reference), 0, f"run: {name}")

    def check_quantized(self, form, want, got):
        for name, reference in want.items():
            self.assertTrue(np.all(np.isfinite(got[name])), f"{form}: {name}")
            self.assertGreater(sqnr(reference, got[name]), LEAST_DB, f"{form}: {name}")

    def one(self, seed):
        net, path, calib = RandomNet(seed), self.scratch / "net.onnx", self.scratch / "calib.npz"
        model = net.model()
        onnx.save(model, path)
        x = {"x": net.normal(SAMPLES, *INPUT)}
        np.savez(calib, **x)
        want = run_samples(session(model), model, x)
        self.check_float(want, qxc_outputs(path, x, self.scratch, "-quiet"))
        quantize = (path, f"-calib={calib}", "-activations=uint16", "-quiet", "-no-sync")
        for form in ("qdq", "qop"):
            emitted = self.scratch / f"{form}.onnx"
            qxc(*quantize, f"-emit={form}", "-o", emitted)
            self.check_quantized(form, want, run_samples(session(emitted), model, x))
        emitted = self.scratch / "true.qir"
        qxc(*quantize, "-form=true", "-o", emitted)
        self.check_quantized("true", want, qxc_outputs(emitted, x, self.scratch, "-quiet"))

    def test_random(self):
        self.try_seeds(self.one, MODELS, SECONDS)


if __name__ == "__main__":
    unittest.main()
