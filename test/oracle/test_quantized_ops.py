"""Each operator on integers: DequantizeLinear, operator, QuantizeLinear, with integers going in and
out, against the definition (dequantize exactly, compute in float64, quantize). At most one step
apart, and exact where `exact` says so. That qxc computed on integers shows in the true form: no
conversion is left in it."""

import functools
import itertools
import math
import unittest
import zlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from common import OracleCase, qxc

RANGES = {T.INT8: (-128, 127), T.UINT8: (0, 255), T.INT16: (-32768, 32767), T.UINT16: (0, 65535),
          T.INT4: (-8, 7), T.UINT4: (0, 15)}
NUMPY = {T.INT8: np.int8, T.UINT8: np.uint8, T.INT16: np.int16, T.UINT16: np.uint16}


class Q:
    """Quantization: element type, scale(s), zero point(s), axis."""

    def __init__(self, elem, scale, zp=0, axis=None):
        self.elem, self.axis = elem, axis
        self.scale = np.asarray(scale, np.float32)
        self.zp = np.broadcast_to(np.asarray(zp, np.int64), self.scale.shape)

    def shaped(self, v, rank):
        return v if self.axis is None else v.reshape([-1 if i == self.axis else 1 for i in range(rank)])

    def real(self, q):
        return (q.astype(np.float64) - self.shaped(self.zp, q.ndim)) * self.shaped(self.scale, q.ndim)

    def ints(self, x):
        lo, hi = RANGES[self.elem]
        return np.clip(np.rint(x / self.shaped(self.scale, x.ndim)) + self.shaped(self.zp, x.ndim), lo, hi)


def tensor(name, elem, values):
    return helper.make_tensor(name, elem, values.shape, values.ravel().astype(np.int64).tolist())


class Model:
    """One operator between conversions."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(zlib.crc32(seed.encode()))
        self.nodes, self.inits, self.inputs, self.feeds, self.reals, self.names = [], [], [], {}, [], []

    def parameters(self, name, q):
        self.inits.append(numpy_helper.from_array(q.scale, name + "_s"))
        self.inits.append(tensor(name + "_z", q.elem, np.asarray(q.zp)))
        return [name + "_s", name + "_z"]

    def operand(self, q, shape, const=False):
        name = f"x{len(self.names)}"
        lo, hi = RANGES[q.elem]
        v = self.rng.integers(lo, hi + 1, shape)
        if const:
            self.inits.append(tensor(name, q.elem, v))
        else:
            self.inputs.append(helper.make_tensor_value_info(name, q.elem, shape))
            self.feeds[name] = v.astype(NUMPY[q.elem])
        axis = {} if q.axis is None else {"axis": q.axis}
        self.nodes.append(helper.make_node("DequantizeLinear", [name] + self.parameters(name, q), [name + "_f"], **axis))
        self.names.append(name + "_f")
        self.reals.append(q.real(v))
        return self.reals[-1]

    def bias(self, x, w, shape, spread=2000):
        """int32 at the accumulator's scale."""
        scale = (x.scale * w.scale).astype(np.float32)
        v = self.rng.integers(-spread, spread, shape).astype(np.int32)
        name = f"x{len(self.names)}"
        self.inits += [numpy_helper.from_array(v, name), numpy_helper.from_array(scale, name + "_s")]
        axis = {"axis": 0} if scale.ndim else {}
        self.nodes.append(helper.make_node("DequantizeLinear", [name, name + "_s"], [name + "_f"], **axis))
        self.names.append(name + "_f")
        self.reals.append(v.astype(np.float64) * scale)
        return self.reals[-1]

    def floats(self, value):
        name = f"x{len(self.names)}"
        self.inits.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        self.names.append(name)

    def ints(self, value):
        name = f"x{len(self.names)}"
        self.inits.append(numpy_helper.from_array(np.asarray(value, np.int64), name))
        self.names.append(name)

    def finish(self, op, y, shape, **attrs):
        self.nodes.append(helper.make_node(op, self.names, ["y_f"], **attrs))
        self.nodes.append(helper.make_node("QuantizeLinear", ["y_f"] + self.parameters("y", y), ["y"]))
        out = helper.make_tensor_value_info("y", y.elem, shape)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [out], self.inits)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def conv(x, w, b, pads, strides, group=1, dilation=1):
    """NCHW in float64."""
    x = np.pad(x, [(0, 0), (0, 0), (pads, pads), (pads, pads)])
    n, c, h, wd = x.shape
    m, cg, kh, kw = w.shape
    oh = (h - (kh - 1) * dilation - 1) // strides + 1
    ow = (wd - (kw - 1) * dilation - 1) // strides + 1
    y = np.zeros((n, m, oh, ow))
    for o in range(m):
        g = o // (m // group)
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * cg:(g + 1) * cg, i * dilation:i * dilation + oh * strides:strides,
                         j * dilation:j * dilation + ow * strides:strides]
                y[:, o] += np.einsum("nchw,c->nhw", part, w[o, :, i, j])
        if b is not None:
            y[:, o] += b[o]
    return y


def windows(x, k, s):
    """[..., oh, ow, k, k]"""
    v = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))
    return v[:, :, ::s, ::s]


def transposed(x, w, b, stride, group):
    """ConvTranspose without pads."""
    n, c, h, wd = x.shape
    _, mg, kh, kw = w.shape
    y = np.zeros((n, mg * group, (h - 1) * stride + kh, (wd - 1) * stride + kw))
    for i in range(c):
        g = i // (c // group)
        for dy in range(kh):
            for dx in range(kw):
                y[:, g * mg:(g + 1) * mg, dy:dy + (h - 1) * stride + 1:stride, dx:dx + (wd - 1) * stride + 1:stride] += (
                    x[:, i, None] * w[i, :, dy, dx][None, :, None, None])
    return y + b[None, :, None, None]


def linear(x, axis, size):
    """Interpolated along an axis, pixels being areas (half_pixel)."""
    n = x.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0, n - 1)
    low = at.astype(int)
    weight = (at - low).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return np.take(x, low, axis) * (1 - weight) + np.take(x, np.minimum(low + 1, n - 1), axis) * weight


class QuantizedOps(OracleCase):
    def check_exact(self, m, model, want, y):
        """The same integers: nothing is computed."""
        path, x, out = self.scratch / "m.onnx", self.scratch / "x.npz", self.scratch / "y.npz"
        onnx.save(model, path)
        np.savez(x, **m.feeds)
        self.assertNotIn("QuantizeLinear(", qxc(path, "-emit=qir", "-form=true").stdout.split("graph @")[1])
        qxc("run", path, f"-input={x}", "-o", out)
        np.testing.assert_array_equal(np.load(out)["y"].reshape(want.shape), y.ints(want))

    def check(self, name, m, model, want, y, exact=False, conversions=False):
        path, x, out = self.scratch / "m.onnx", self.scratch / "x.npz", self.scratch / "y.npz"
        onnx.save(model, path)
        np.savez(x, **{k: v if v.shape[0] == 1 else v[None] for k, v in m.feeds.items()})
        text = qxc(path, "-emit=qir", "-form=true").stdout
        body = text[text.index("graph @"):]
        if not conversions:
            self.assertNotIn("QuantizeLinear(", body, name)
            self.assertNotIn("DequantizeLinear(", body, name)
        qxc("run", path, f"-input={x}", "-o", out)
        have = np.load(out)["y"].astype(np.int64)
        expect = y.ints(want)
        have = have.reshape(expect.shape)
        away = np.abs(have - expect)
        self.assertLessEqual(away.max(initial=0), 1, f"{name}: {np.argwhere(away > 1)[:5].tolist()}")
        # float32 products tie elsewhere than float64's, so that a few may differ in any case.
        self.assertLessEqual((away > 0).sum(), max(2, away.size * (0.002 if exact else 0.01)), name)
        lo, hi = RANGES[y.elem]
        self.assertGreater(((have > lo) & (have < hi)).mean(), 0.25, f"{name}: mostly saturated")

    def test_conv(self):
        per_channel = [0.01, 0.02, 0.005, 0.013, 0.008, 0.03]
        for label, x, w, y, shape, ws, kw in (
                ("u8u8", Q(T.UINT8, 0.02, 120), Q(T.UINT8, 0.01, 128), Q(T.UINT8, 0.4, 128), (1, 4, 7, 7), (6, 4, 3, 3), {}),
                ("u8w zp", Q(T.UINT8, 0.02, 3), Q(T.UINT8, 0.01, 77), Q(T.UINT8, 0.9, 100), (1, 4, 7, 7), (6, 4, 3, 3), {}),
                ("s8 per channel", Q(T.INT8, 0.02, -5), Q(T.INT8, per_channel, 0, 0), Q(T.INT8, 0.4, 7), (1, 4, 9, 8), (6, 4, 3, 3), {"pads": 1, "strides": 2}),
                ("u8s8", Q(T.UINT8, 0.02, 9), Q(T.INT8, per_channel, 0, 0), Q(T.UINT8, 0.8, 120), (1, 4, 6, 6), (6, 4, 1, 1), {}),
                ("zp per channel", Q(T.INT8, 0.02, 0), Q(T.INT8, per_channel, [1, -2, 3, 0, 5, -6], 0), Q(T.INT8, 0.4, 0), (1, 4, 6, 6), (6, 4, 3, 3), {"pads": 1}),
                ("group", Q(T.INT8, 0.02, -5), Q(T.INT8, per_channel, 0, 0), Q(T.INT8, 0.3, 7), (1, 4, 9, 8), (6, 2, 3, 3), {"group": 2, "dilation": 2}),
                ("depthwise", Q(T.INT8, 0.02, -5), Q(T.INT8, per_channel, 0, 0), Q(T.INT8, 0.1, 7), (1, 6, 9, 8), (6, 1, 3, 3), {"group": 6, "pads": 1, "strides": 2}),
                ("depthwise u8", Q(T.UINT8, 0.02, 99), Q(T.UINT8, 0.01, 120), Q(T.UINT8, 0.1, 130), (1, 3, 9, 8), (6, 1, 5, 5), {"group": 3, "pads": 2}),
                ("int4 weights", Q(T.INT8, 0.02, -5), Q(T.INT4, [0.1, 0.2, 0.05, 0.13, 0.08, 0.3], 0, 0), Q(T.INT8, 0.3, 7), (1, 4, 7, 7), (6, 4, 3, 3), {}),
                ("uint4 weights", Q(T.UINT8, 0.02, 125), Q(T.UINT4, 0.1, 8), Q(T.UINT8, 0.307, 128), (1, 4, 7, 7), (6, 4, 3, 3), {}),
                ("16 bit", Q(T.INT16, 0.0001, 50), Q(T.INT8, per_channel, 0, 0), Q(T.INT16, 0.001, -9), (1, 4, 7, 7), (6, 4, 3, 3), {"pads": 1}),
                ("u16", Q(T.UINT16, 0.0001, 30000), Q(T.INT8, 0.01), Q(T.UINT16, 0.001, 30000), (1, 4, 7, 7), (6, 4, 3, 3), {}),
        ):
            for bias in (True, False):
                with self.subTest(label, bias=bias):
                    m = Model(label)
                    a, b = m.operand(x, shape), m.operand(w, ws, const=True)
                    c = m.bias(x, w, (6,)) if bias else None
                    c = np.broadcast_to(c, 6) if bias else None
                    want = conv(a, b, c, kw.get("pads", 0), kw.get("strides", 1), kw.get("group", 1), kw.get("dilation", 1))
                    model = m.finish("Conv", y, want.shape, pads=[kw.get("pads", 0)] * 4, strides=[kw.get("strides", 1)] * 2,
                                     dilations=[kw.get("dilation", 1)] * 2, group=kw.get("group", 1))
                    self.check(label, m, model, want, y, exact=True)

    def test_gemm(self):
        x, y = Q(T.INT8, 0.02, -5), Q(T.INT8, 0.7, 7)
        for label, w, attrs, bias in (
                ("plain", Q(T.INT8, 0.01), {}, True), ("no bias", Q(T.INT8, 0.01), {}, False),
                ("per column", Q(T.INT8, np.linspace(0.01, 0.03, 5), 0, 1), {}, True),
                ("per row, transB", Q(T.INT8, np.linspace(0.01, 0.03, 5), 0, 0), {"transB": 1}, True),
                ("alpha", Q(T.INT8, 0.01), {"alpha": 0.5, "beta": 0.5}, True),
                ("beta", Q(T.INT8, 0.01), {"beta": 2.0}, True),
                ("alpha alone", Q(T.INT8, 0.01), {"alpha": 1.5}, True),
                ("u8 weights", Q(T.UINT8, 0.01, 120), {"transB": 1}, True),
                ("transA", Q(T.INT8, 0.01), {"transA": 1}, True)):
            with self.subTest(label):
                m = Model(label)
                a = m.operand(x, (33, 4) if "transA" in attrs else (4, 33))
                b = m.operand(w, (5, 33) if "transB" in attrs else (33, 5), const=True)
                c = m.bias(x, w, (5,)) if bias else 0
                a = a.T if "transA" in attrs else a
                b = b.T if "transB" in attrs else b
                want = attrs.get("alpha", 1) * a @ b + attrs.get("beta", 1) * c
                self.check(label, m, m.finish("Gemm", y, want.shape, **attrs), want, y)

    def test_matmul(self):
        for label, x, w, y, xs, ws, const in (
                ("constant", Q(T.INT8, 0.02, -5), Q(T.INT8, np.linspace(0.01, 0.03, 5), 0, 1), Q(T.INT8, 0.5, 1), (1, 4, 17), (17, 5), True),
                ("both computed", Q(T.UINT8, 0.02, 125), Q(T.UINT8, 0.01, 128), Q(T.UINT8, 0.3, 128), (1, 2, 4, 17), (1, 2, 17, 5), False),
                ("batch against one", Q(T.INT8, 0.02, -5), Q(T.INT8, 0.02, 3), Q(T.INT8, 0.5, 1), (3, 4, 17), (17, 5), True),
                ("16 bit", Q(T.INT16, 0.0002, -5), Q(T.INT16, 0.0003, 3), Q(T.INT16, 0.05, 1), (3, 17), (17, 5), True)):
            with self.subTest(label):
                m = Model(label)
                a, b = m.operand(x, xs), m.operand(w, ws, const=const)
                self.check(label, m, m.finish("MatMul", y, (a @ b).shape), a @ b, y, exact=True)

    def test_elementwise(self):
        a, b = Q(T.INT8, 0.02, -5), Q(T.INT8, 0.03, 9)
        for op, fn, y in (("Add", np.add, Q(T.INT8, 0.05, 3)), ("Sub", np.subtract, Q(T.INT8, 0.05, 3)), ("Mul", np.multiply, Q(T.INT8, 0.0613, -9))):
            for xs, ws in (((1, 3, 4, 5), (1, 3, 4, 5)), ((1, 3, 4, 5), (3, 1, 1)), ((1, 3, 1, 5), (1, 1, 4, 1))):
                with self.subTest(op, shapes=(xs, ws)):
                    m = Model(op)
                    want = fn(m.operand(a, xs), m.operand(b, ws, const=True))
                    self.check(op, m, m.finish(op, y, want.shape), want, y)
        for elem in (T.UINT8, T.INT16, T.UINT16):
            with self.subTest(elem=elem):
                lo, hi = RANGES[elem]
                k = 255 / (hi - lo)
                m = Model("wide")
                want = m.operand(Q(elem, 0.02 * k, lo + 100), (1, 50)) + m.operand(Q(elem, 0.03 * k, lo + 9), (1, 50))
                y = Q(elem, 0.0617 * k, lo + 80)
                self.check("Add", m, m.finish("Add", y, want.shape), want, y)

    def test_sum(self):
        m, y = Model("sum"), Q(T.INT8, 0.05, 3)
        want = m.operand(Q(T.INT8, 0.02, -5), (1, 30)) + m.operand(Q(T.INT8, 0.03, 9), (1, 30))
        self.check("Sum", m, m.finish("Sum", y, want.shape), want, y)

    def test_sum_of_three(self):
        """Rounded once, as defined."""
        m, y = Model("sum"), Q(T.INT8, 0.0517, 3)
        want = sum(m.operand(Q(T.INT8, s, z), (1, 30)) for s, z in ((0.02, -5), (0.03, 9), (0.01, 0)))
        self.check("Sum", m, m.finish("Sum", y, want.shape), want, y)

    def test_blocked_weights(self):
        """Weights in blocks along the summed axis: computed in float, with a float bias."""
        m, y = Model("blocks"), Q(T.INT8, 0.11, 3)
        a = m.operand(Q(T.INT8, 0.02, -5), (4, 64))
        w = m.rng.integers(-8, 8, (64, 5))
        scale = m.rng.uniform(0.01, 0.03, (2, 5)).astype(np.float32)
        m.inits += [tensor("w", T.INT4, w), numpy_helper.from_array(scale, "w_s")]
        m.nodes.append(helper.make_node("DequantizeLinear", ["w", "w_s"], ["w_f"], axis=0, block_size=32))
        m.names.append("w_f")
        m.floats([0.5, -0.25, 1.0, 0.0, 2.0])
        want = a @ (w * np.repeat(scale, 32, 0).astype(np.float64)) + [0.5, -0.25, 1.0, 0.0, 2.0]
        self.check("Gemm", m, m.finish("Gemm", y, want.shape), want, y, conversions=True)

    def test_pools(self):
        for elem in (T.INT8, T.UINT8, T.INT16):
            lo, _ = RANGES[elem]
            x, y = Q(elem, 0.02, lo + 100), Q(elem, 0.015, lo + 90)
            with self.subTest("AveragePool", elem=elem):
                m = Model("average")
                want = windows(m.operand(x, (1, 3, 8, 8)), 3, 2).mean(axis=(-1, -2))
                self.check("AveragePool", m, m.finish("AveragePool", y, want.shape, kernel_shape=[3, 3], strides=[2, 2]), want, y)
            with self.subTest("GlobalAveragePool", elem=elem):
                m = Model("global")
                want = m.operand(x, (1, 30, 5, 5)).mean(axis=(2, 3), keepdims=True)
                self.check("GlobalAveragePool", m, m.finish("GlobalAveragePool", y, want.shape), want, y)
            with self.subTest("MaxPool", elem=elem):
                m = Model("max")
                want = windows(m.operand(x, (1, 3, 8, 8)), 2, 2).max(axis=(-1, -2))
                self.check("MaxPool", m, m.finish("MaxPool", x, want.shape, kernel_shape=[2, 2], strides=[2, 2]), want, x, exact=True)

    def test_norms_of_windows(self):
        for elem, p in itertools.product((T.INT8, T.UINT8, T.INT16), (1, 2)):
            lo, _ = RANGES[elem]
            x, y = Q(elem, 0.02, lo + 100), Q(elem, (0.413, 0.0817)[p - 1], lo + 9)
            norm = functools.partial(np.linalg.norm, ord=p, axis=-1)
            with self.subTest("LpPool", elem=elem, p=p):
                m = Model("norm")
                real = np.pad(m.operand(x, (1, 3, 8, 8)), ((0, 0), (0, 0), (1, 1), (1, 1)))
                want = norm(windows(real, 3, 2).reshape(1, 3, 4, 4, 9))
                attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "p": p}
                self.check("LpPool", m, m.finish("LpPool", y, want.shape, **attrs), want, y)
            with self.subTest("GlobalLpPool", elem=elem, p=p):
                m = Model("global norm")
                want = norm(m.operand(x, (1, 30, 5, 5)).reshape(1, 30, 25))[..., None, None]
                self.check("GlobalLpPool", m, m.finish("GlobalLpPool", y, want.shape, p=p), want, y)

    def test_clamps(self):
        for label, x, y in (("equal", Q(T.INT8, 0.02, -5), Q(T.INT8, 0.02, -5)), ("unequal", Q(T.INT8, 0.02, -5), Q(T.INT8, 0.013, -128)),
                            ("16 bit", Q(T.INT16, 0.0002, -5), Q(T.INT16, 0.00013, -32768)), ("u8", Q(T.UINT8, 0.02, 128), Q(T.UINT8, 0.01, 0))):
            with self.subTest(label):
                m = Model(label)
                want = np.maximum(m.operand(x, (1, 4, 50)), 0)
                if label == "equal":  # half of the values are at the zero point
                    self.assertEqual(y.ints(want).min(), -5)
                self.check("Relu", m, m.finish("Relu", y, want.shape), want, y, exact=label != "16 bit")
                m = Model(label)
                want = np.clip(m.operand(x, (1, 4, 50)), -1, 1.5)
                m.floats(-1.0)
                m.floats(1.5)
                self.check("Clip", m, m.finish("Clip", y, want.shape), want, y, exact=label != "16 bit")

    def test_sigmoid_tanh_leakyrelu(self):
        x = Q(T.INT8, 0.03, -5)
        for op, fn, y, attrs in (
                ("Sigmoid", lambda v: 1 / (1 + np.exp(-v)), Q(T.INT8, 1 / 256, -128), {}),
                ("Tanh", np.tanh, Q(T.INT8, 1 / 128, 0), {}),
                ("LeakyRelu", lambda v: np.where(v < 0, 0.125 * v, v), Q(T.INT8, 0.0211, -100), {"alpha": 0.125})):
            with self.subTest(op):
                m = Model(op)
                want = fn(m.operand(x, (1, 4, 50)))
                self.check(op, m, m.finish(op, y, want.shape, **attrs), want, y)

    def test_convtranspose(self):
        per_channel = [0.01, 0.02, 0.005, 0.013]
        for label, x, w, y, shape, ws, group in (
                ("per tensor", Q(T.UINT8, 0.02, 120), Q(T.UINT8, 0.01, 128), Q(T.UINT8, 0.3, 128), (1, 3, 5, 4), (3, 4, 3, 3), 1),
                ("per channel", Q(T.INT8, 0.02, -5), Q(T.INT8, per_channel, 0, 1), Q(T.INT8, 0.2, 7), (1, 3, 5, 4), (3, 4, 3, 3), 1),
                ("group", Q(T.INT8, 0.02, -5), Q(T.INT8, 0.01, 0), Q(T.INT8, 0.1, 7), (1, 4, 5, 4), (4, 2, 2, 3), 2),
                ("16 bit", Q(T.INT16, 0.0001, 50), Q(T.INT8, per_channel, 0, 1), Q(T.INT16, 0.001, -9), (1, 3, 5, 4), (3, 4, 3, 3), 1)):
            for bias in (True, False):
                with self.subTest(label, bias=bias):
                    m = Model(label)
                    a, b = m.operand(x, shape), m.operand(w, ws, const=True)
                    c = np.broadcast_to(m.bias(x, w, (4,)), 4) if bias else np.zeros(4)
                    want = transposed(a, b, c, 2, group)[:, :, 1:, 1:]
                    model = m.finish("ConvTranspose", y, want.shape, strides=[2, 2], pads=[1, 1, 0, 0], group=group)
                    self.check(label, m, model, want, y, exact=True)

    def test_reductions(self):
        for elem in (T.INT8, T.UINT8, T.INT16):
            lo, _ = RANGES[elem]
            for op, fn, order in (("ReduceMean", np.mean, False), ("ReduceSum", np.sum, False),
                                  ("ReduceMax", np.max, True), ("ReduceMin", np.min, True)):
                for axes in ((2, 3), (1,), (1, 3)):
                    with self.subTest(op, elem=elem, axes=axes):
                        m, x = Model(op), Q(elem, 0.02 * 256 / (RANGES[elem][1] - lo + 1), lo + 100)
                        want = fn(m.operand(x, (1, 7, 6, 5)), axis=axes, keepdims=True)
                        target = x if order else Q(elem, np.abs(want).max() / (RANGES[elem][1] - lo) * 2.1, (RANGES[elem][1] + lo) // 2)
                        m.ints(axes)
                        model = m.finish(op, target, want.shape)
                        if order:
                            self.check_exact(m, model, want, x)
                        else:
                            self.check(op, m, model, want, target)

    def test_resize(self):
        for elem in (T.INT8, T.UINT8, T.INT16):
            x = Q(elem, 0.02, RANGES[elem][0] + 90)
            with self.subTest("nearest", elem=elem):
                m = Model("nearest")
                want = m.operand(x, (1, 2, 5, 4)).repeat(2, 2).repeat(2, 3)
                m.names += ["", ""]
                m.ints(want.shape)
                self.check("Resize", m, m.finish("Resize", x, want.shape, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"), want, x, exact=True)
            with self.subTest("linear", elem=elem):
                m = Model("linear")
                a = m.operand(x, (1, 2, 5, 4))
                want = linear(linear(a, 2, 11), 3, 13)  # ties are rare
                m.names += ["", ""]
                m.ints(want.shape)
                self.check("Resize", m, m.finish("Resize", x, want.shape, mode="linear"), want, x)

    def test_tables(self):
        """Functions of one number: the table is the definition, so all of it is exact."""
        erf = np.vectorize(math.erf)
        signed, positive = Q(T.INT8, 0.03, -5), Q(T.INT8, 0.02, -128)
        for op, fn, x, y, attrs in (
                ("Abs", np.abs, signed, Q(T.INT8, 0.0151, -128), {}),
                ("Asinh", np.arcsinh, signed, Q(T.INT8, 0.017, 3), {}),
                ("Atan", np.arctan, signed, Q(T.INT8, 0.012, 0), {}),
                ("Celu", lambda v: np.where(v > 0, v, 0.7 * np.expm1(v / np.float32(0.7))), signed, Q(T.INT8, 0.021, -90), {"alpha": 0.7}),
                ("Elu", lambda v: np.where(v > 0, v, 1.5 * np.expm1(v)), signed, Q(T.INT8, 0.021, -50), {"alpha": 1.5}),
                ("Erf", erf, signed, Q(T.INT8, 1 / 127, 0), {}),
                ("Exp", np.exp, signed, Q(T.INT8, 0.15, -128), {}),
                ("Gelu", lambda v: v * (1 + erf(v / np.sqrt(2))) / 2, signed, Q(T.INT8, 0.0173, -118), {}),
                ("HardSigmoid", lambda v: np.clip(np.float32(0.2) * v + 0.5, 0, 1), signed, Q(T.INT8, 1 / 255, -128), {}),
                ("HardSwish", lambda v: v * np.clip(v / 6 + 0.5, 0, 1), signed, Q(T.INT8, 0.0157, -104), {}),
                ("Log", np.log, positive, Q(T.INT8, 0.023, 40), {}),
                ("Mish", lambda v: v * np.tanh(np.log1p(np.exp(v))), signed, Q(T.INT8, 0.0173, -110), {}),
                ("Neg", np.negative, signed, Q(T.INT8, 0.0331, 5), {}),
                ("Reciprocal", lambda v: 1 / v, positive, Q(T.INT8, 0.021, -128), {}),
                ("Shrink", lambda v: np.where(v < -1.5, v + 0.5, np.where(v > 1.5, v - 0.5, 0)), signed, Q(T.INT8, 0.0253, -8),
                 {"bias": 0.5, "lambd": 1.5}),
                ("Softsign", lambda v: v / (1 + np.abs(v)), signed, Q(T.INT8, 0.0067, 0), {}),
                ("Sqrt", np.sqrt, positive, Q(T.INT8, 0.0091, -128), {}),
                ("ThresholdedRelu", lambda v: np.where(v > 1, v, 0), signed, Q(T.INT8, 0.017, -128 + 30), {"alpha": 1.0})):
            with self.subTest(op):
                m = Model(op)
                a = m.operand(x, (1, 4, 50))
                with np.errstate(divide="ignore"):
                    want = np.nan_to_num(fn(a), neginf=-1e9, posinf=1e9)
                self.check(op, m, m.finish(op, y, want.shape, **attrs), want, y)

    def test_tables_with_a_constant(self):
        for op, fn, k, x, y in (
                ("Pow", lambda v: v ** 2, [2.0], Q(T.INT8, 0.02, -5), Q(T.INT8, 0.0241, -128)),
                ("PRelu", lambda v: np.where(v < 0, 0.25 * v, v), [0.25], Q(T.UINT8, 0.02, 128), Q(T.UINT8, 0.013, 60))):
            with self.subTest(op):
                m = Model(op)
                want = fn(m.operand(x, (1, 4, 50)))
                m.floats(k)
                self.check(op, m, m.finish(op, y, want.shape), want, y)

    def test_choices(self):
        """Min, Max and Where: operands are requantized to the result's parameters."""
        for label, a, b, y in (("equal", *[Q(T.INT8, 0.02, -5)] * 3),
                               ("unequal", Q(T.INT8, 0.02, -5), Q(T.INT8, 0.031, 9), Q(T.INT8, 0.0261, 3)),
                               ("16 bit", Q(T.INT16, 0.0002, -5), Q(T.INT16, 0.0003, 4), Q(T.INT16, 0.00037, 4))):
            for op, fn in (("Min", np.minimum), ("Max", np.maximum)):
                with self.subTest(op, label=label):
                    m = Model(op + label)
                    want = fn(m.operand(a, (1, 3, 40)), m.operand(b, (3, 1)))
                    self.check(op, m, m.finish(op, y, want.shape), want, y)
            with self.subTest("Where", label=label):
                m = Model("where" + label)
                choice = m.rng.integers(0, 2, (1, 40)).astype(bool)
                m.inits.append(numpy_helper.from_array(choice, "choice"))
                m.names.append("choice")
                want = np.where(choice, m.operand(a, (1, 3, 40)), m.operand(b, (3, 1)))
                self.check("Where", m, m.finish("Where", y, want.shape), want, y)

    def test_softmax(self):
        for elem, scale in ((T.UINT8, 1 / 256), (T.INT8, 1 / 255), (T.INT16, 1 / 65536)):
            for axis in (-1, 1):
                with self.subTest(elem=elem, axis=axis):
                    m, y = Model("softmax"), Q(elem, scale, RANGES[elem][0])
                    a = m.operand(Q(elem, 8.0 / (RANGES[elem][1] - RANGES[elem][0]), 3), (1, 5, 6))
                    e = np.exp(a - a.max(axis=axis, keepdims=True))
                    want = e / e.sum(axis=axis, keepdims=True)
                    self.check("Softmax", m, m.finish("Softmax", y, want.shape, axis=axis), want, y)

    def test_concat(self):
        for label, parts in (("equal", [Q(T.INT8, 0.02, -5)] * 2), ("unequal", [Q(T.INT8, 0.02, -5), Q(T.INT8, 0.0317, 4), Q(T.INT8, 0.0113, 0)]),
                             ("16 bit", [Q(T.INT16, 0.0002, -5), Q(T.INT16, 0.0003, 4)])):
            for axis in (0, 1, -1):
                with self.subTest(label, axis=axis):
                    m, y = Model(label), parts[0]
                    shapes = [[2, 3, 4] for _ in parts]
                    shapes[-1][axis] = 5
                    want = np.concatenate([m.operand(q, s) for q, s in zip(parts, shapes)], axis)
                    self.check("Concat", m, m.finish("Concat", y, want.shape, axis=axis), want, y)

    def test_movers(self):
        q = Q(T.INT8, 0.02, -5)
        for op, fn, attrs, extra in (
                ("Transpose", lambda v: v.transpose(0, 2, 1, 3), {"perm": [0, 2, 1, 3]}, None),
                ("Reshape", lambda v: v.reshape(1, 12, -1), {}, [1, 12, -1]),
                ("Flatten", lambda v: v.reshape(1, -1), {"axis": 1}, None),
                ("Unsqueeze", lambda v: v[:, None], {}, [1]),
                ("Identity", lambda v: v, {}, None)):
            with self.subTest(op):
                m = Model(op)
                want = fn(m.operand(q, (1, 3, 4, 5)))
                if extra:
                    m.ints(extra)
                self.check(op, m, m.finish(op, q, want.shape, **attrs), want, q, exact=True)


if __name__ == "__main__":
    unittest.main()
