"""Random QDQ models: `qxc run`, and both forms that qxc emits, against onnxruntime.

Every value carries a bound on how far two right answers may lie apart: each rounding may differ by
one step, and each operator hands on at most so much of what its operands differ. Models depend on
their seed alone; slow machines try fewer of them.
"""

import random
import unittest
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from common import OracleCase, qxc, qxc_outputs, session

MODELS, SECONDS = 600, 20
TYPES = (np.uint8, np.uint8, np.int8, np.int8, np.int16, np.uint16)


class Grid(NamedTuple):
    scale: np.float32
    zero: np.generic
    operands: list  # names of the constants

    def largest(self):
        info, zero = np.iinfo(self.zero.dtype), int(self.zero)
        return float(self.scale) * max(info.max - zero, zero - info.min)


class Value(NamedTuple):
    """A DequantizeLinear's result, the integers before it, and how far from exact it may be."""
    name: str
    integers: str
    shape: tuple
    grid: Grid
    error: float


class RandomNet:
    def __init__(self, seed):
        self.pick, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.dtype = self.pick.choice(TYPES)
        self.nodes, self.constants, self.outputs, self.count = [], [], {}, 0
        self.values = []
        self.quantize("x", (1, 2, 4, 4), self.grid(), 0)
        for _ in range(self.pick.randint(2, 7)):
            self.layer()
        for value in (*self.pick.sample(self.values, 2), self.values[-1]):
            self.outputs[value.name] = value.error
            if self.pick.random() < 0.3:
                self.outputs[value.integers] = value.error / float(value.grid.scale)

    # ---- building

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, array):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, **attributes):
        name = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def grid(self):
        info = np.iinfo(self.dtype)
        scale = self.pick.choice([0.02, 0.05, 0.1, 0.013]) * (1 if info.bits == 8 else 2**-8)
        middle = (int(info.min) + int(info.max) + 1) // 2
        zero = self.pick.choice([info.min, info.max, middle, self.pick.randint(info.min, info.max)])
        scale, zero = np.float32(scale), self.dtype(zero)
        return Grid(scale, zero, [self.constant(scale), self.constant(zero)])

    def quantize(self, name, shape, grid, error):
        integers = self.node("QuantizeLinear", [name, *grid.operands])
        real = self.node("DequantizeLinear", [integers, *grid.operands])
        self.values.append(Value(real, integers, shape, grid, error))

    # ---- layers: each returns the float result, its shape and its error before rounding

    def layer(self):
        x = self.pick.choice(self.values[-3:])
        kind = self.pick.choice([self.conv, self.conv, self.binary, self.concat, self.pool,
                                 self.clamp, self.clamp, self.pad, self.move])
        name, shape, error = kind(x)
        same = kind not in (self.conv, self.binary) and self.pick.random() < 0.5
        grid = x.grid if same else self.grid()
        error += 1.01 * float(grid.scale) + 1e-4
        if self.pick.random() < 0.15:
            self.outputs[name] = error
        self.quantize(name, shape, grid, error)

    def conv(self, x):
        channels, height, width = x.shape[1:]
        group = channels if self.pick.random() < 0.2 else 1
        count = channels if group > 1 else self.pick.randint(1, 3)
        size = 3 if min(height, width) >= 3 and self.pick.random() < 0.7 else 1
        scales = self.pick.choice([1, count])
        scale = self.rng.choice([0.005, 0.01, 0.02], scales).astype(np.float32)
        dtype = self.pick.choice([np.int8, np.uint8])
        zero = np.full(scales, 0 if dtype is np.int8 else self.pick.choice([0, 120, 255]), dtype)
        data = self.rng.integers(-127 if dtype is np.int8 else 0, np.iinfo(dtype).max,
                                 (count, channels // group, size, size), endpoint=True)
        data = data.astype(dtype)
        axis = {"axis": 0} if scales > 1 else {}
        if scales == 1:
            scale, zero = scale[0], zero[0]
        operands = [x.name, self.node("DequantizeLinear", [
            self.constant(data), self.constant(scale), self.constant(zero)], **axis)]
        if self.pick.random() < 0.7:
            operands.append(self.bias(count, np.float32(x.grid.scale * scale), axis))
        pad, stride = size // 2 * self.pick.randint(0, 1), self.pick.choice([1, 1, 2])
        name = self.node("Conv", operands, pads=[pad] * 4, strides=[stride] * 2, group=group)
        if self.pick.random() < 0.4:
            name = self.node("Relu", [name])
        real = (data.astype(float).reshape(count, -1) - np.reshape(zero, (-1, 1)).astype(float))
        gain = float(np.max(np.sum(abs(real * np.reshape(scale, (-1, 1))), axis=1)))
        sizes = [(n + 2 * pad - size) // stride + 1 for n in (height, width)]
        return name, (1, count, *sizes), gain * x.error

    def bias(self, count, scale, axis):
        """On the accumulator's grid, on one of its own, or float."""
        kind = self.pick.choice(["accumulator", "own", "float"])
        data = self.rng.integers(-2000, 2000, count).astype(np.int32)
        if kind == "float":
            return self.constant((data * np.float32(1e-3)).astype(np.float32))
        if kind == "own":
            scale = (scale * np.float32(3)).astype(np.float32)
        return self.node("DequantizeLinear", [self.constant(data), self.constant(scale)], **axis)

    def binary(self, x):
        y = self.pick.choice([v for v in self.values if v.shape == x.shape])
        op = self.pick.choice(["Add", "Sub", "Mul"])
        error = x.error + y.error
        if op == "Mul":
            error = x.error * y.grid.largest() + y.error * x.grid.largest()
        return self.node(op, [x.name, y.name]), x.shape, error

    def concat(self, x):
        y = self.pick.choice([v for v in self.values if v.shape == x.shape])
        shape = (1, 2 * x.shape[1], *x.shape[2:])
        return self.node("Concat", [x.name, y.name], axis=1), shape, max(x.error, y.error)

    def pool(self, x):
        if min(x.shape[2:]) < 2 or self.pick.random() < 0.2:
            return self.node("GlobalAveragePool", [x.name]), (*x.shape[:2], 1, 1), x.error
        if self.pick.random() < 0.5:
            shape = (*x.shape[:2], x.shape[2] - 1, x.shape[3] - 1)
            return self.node("MaxPool", [x.name], kernel_shape=[2, 2]), shape, x.error
        inside = self.pick.randint(0, 1)
        return self.node("AveragePool", [x.name], kernel_shape=[2, 2], pads=[1, 0, 0, 1],
                         count_include_pad=inside), x.shape, x.error

    def clamp(self, x):
        if self.pick.random() < 0.5:
            return self.node("Relu", [x.name]), x.shape, x.error
        bounds = [np.float32(self.pick.choice(c)) for c in ([-1, 0, 0.33], [0.5, 6])]
        return self.node("Clip", [x.name, *map(self.constant, bounds)]), x.shape, x.error

    def pad(self, x):
        operands = [x.name, self.constant(np.array([0, 0, 1, 0, 0, 0, 0, 1]))]
        if self.pick.random() < 0.6:
            operands.append(self.constant(np.float32(self.pick.choice([0, 0.1, -5, 0.123]))))
        return self.node("Pad", operands), (*x.shape[:2], x.shape[2] + 1, x.shape[3] + 1), x.error

    def move(self, x):
        if x.shape[2] < 2 or self.pick.random() < 0.5:
            shape = (*x.shape[:2], x.shape[3], x.shape[2])
            return self.node("Transpose", [x.name], perm=[0, 1, 3, 2]), shape, x.error
        rows = [self.constant(np.array([i])) for i in (1, 100, 2)]
        shape = (*x.shape[:2], x.shape[2] - 1, x.shape[3])
        return self.node("Slice", [x.name, *rows]), shape, x.error

    def model(self):
        graph = helper.make_graph(
            self.nodes, "net",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 2, 4, 4))],
            [onnx.ValueInfoProto(name=name) for name in self.outputs], self.constants)
        model = helper.make_model(graph, ir_version=10,
                                  opset_imports=[helper.make_opsetid("", 21)])
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


class RandomModels(OracleCase):
    expected_seconds = 20

    def compare(self, what, net, want, got):
        for name, error in net.outputs.items():
            away = np.max(abs(got[name].reshape(want[name].shape).astype(float) -
                              want[name].astype(float)), initial=0)
            self.assertLessEqual(away, error + 1e-6, f"{what}: {name}")

    def one(self, seed):
        net, path = RandomNet(seed), self.scratch / "net.onnx"
        onnx.save(net.model(), path)
        x = {"x": (net.rng.normal(0, 2, (1, 2, 4, 4))).astype(np.float32)}
        names = list(net.outputs)
        want = dict(zip(names, session(path).run(names, x)))
        got = qxc_outputs(path, x, self.scratch, "-quiet")
        self.compare("run", net, want, got)
        for form in ("qdq", "qop"):
            emitted = self.scratch / f"{form}.onnx"
            qxc(path, f"-emit={form}", "-quiet", "-no-sync", "-o", emitted)
            got = dict(zip(names, session(emitted).run(names, x)))
            self.compare(form, net, want, got)

    def test_random(self):
        self.try_seeds(self.one, MODELS, SECONDS)


if __name__ == "__main__":
    unittest.main()
