"""LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization, LogSoftmax and LRN on integers:
against the definition in float64, one step apart at most and then only where the exact value lies so near a tie
that its distance is within the bound that docs/ir.md states; emitted C has the bits of `qxc run` and no floating
point."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T, helper

from cmodel import CModel
from common import OracleCase, for_each, qxc
from test_quantized_ops import RANGES, Model, Q

BUILDS = {"plain": (), "sanitized": ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all")}
WAY = 2.0**-8  # of a step, before rounding
TYPES = {"s8_s8": (T.INT8, T.INT8), "u8_u8": (T.UINT8, T.UINT8), "u8_s16": (T.UINT8, T.INT16),
         "s16_u8": (T.INT16, T.UINT8), "u16_u16": (T.UINT16, T.UINT16), "s16_s16": (T.INT16, T.INT16)}
ZEROS = {"middle": 0.52, "low": 0.0, "high": 1.0}


def at(elem, part):
    lo, hi = RANGES[elem]
    return int(lo + part * (hi - lo))


def layer(x, scale, bias, eps, centre=True, axes=(-1,)):
    x = x - x.mean(axis=axes, keepdims=True) if centre else x
    with np.errstate(invalid="ignore", divide="ignore"):
        y = x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + eps) * scale
    return y if bias is None else y + bias


def local_response(x, size, alpha, beta, bias):
    """The attributes as float32 has them."""
    alpha, beta, bias = (float(np.float32(v)) for v in (alpha, beta, bias))
    before, squares = (size - 1) // 2, np.zeros_like(x)
    for c in range(x.shape[1]):
        squares[:, c] = (x[:, max(c - before, 0):c - before + size] ** 2).sum(1)
    return x / (bias + alpha / size * squares) ** beta


class NormInteger(OracleCase):
    def check(self, m, model, want, y, least=0.2):
        path, x, out = self.scratch / "m.onnx", self.scratch / "x.npz", self.scratch / "y.npz"
        onnx.save(model, path)
        np.savez(x, **{k: v if v.shape[0] == 1 else v[None] for k, v in m.feeds.items()})
        text = qxc(path, "-emit=qir", "-form=true").stdout
        self.assertNotIn("QuantizeLinear(%y", text)
        qxc("run", path, f"-input={x}", "-o", out)
        have = np.load(out)["y"].astype(np.int64).reshape(want.shape)
        value = want / y.scale
        lo, hi = RANGES[y.elem]
        low, high = (np.clip(np.rint(value + d) + y.zp, lo, hi) for d in (-WAY, WAY))
        self.assertTrue(((have >= low) & (have <= high)).all(),
                        f"{np.argwhere((have < low) | (have > high))[:3]}")
        self.assertGreaterEqual(((have > lo) & (have < hi)).mean(), least, "mostly saturated")
        qxc(path, "-emit=c", "-integer-only", "-name=m", "-no-sync", "-quiet", "-o", self.scratch / "m.c")
        for build, flags in BUILDS.items():
            with self.subTest(build=build):
                got = CModel(self.scratch / "m.c", "gcc", ("-O1", *flags)).run(*m.feeds.values())[0]
                np.testing.assert_array_equal(got, have.ravel())

    def one(self, op, types, zero, shape, parameters, want, seed="", eps=1e-5, **attrs):
        """`parameters`: shapes of scale and bias; `want` of x, scale, bias."""
        from_, to = TYPES[types]
        m = Model(f"{op} {types} {zero} {shape} {seed}")
        span = RANGES[from_][1] - RANGES[from_][0]
        x = m.operand(Q(from_, 6.1 / span, at(from_, ZEROS[zero])), shape)
        real = [m.rng.normal(1, 0.4, s).astype(np.float32) for s in parameters]
        for v in real:
            m.floats(v)
        result = want(x, *(v.astype(np.float64) for v in real), eps)
        y = Q(to, 8.3 / (RANGES[to][1] - RANGES[to][0]), at(to, 0.43))
        self.check(m, m.finish(op, y, result.shape, epsilon=eps, **attrs), result, y)

    @for_each(*TYPES)
    def test_layer_normalization(self, types):
        for zero in ZEROS:
            with self.subTest(zero=zero):
                self.one("LayerNormalization", types, zero, (1, 7, 24), [(24,), (24,)], layer)

    @for_each((1, 3, 1), (2, 2, 3, 5), (1, 1, 4099))
    def test_lengths_of_rows(self, shape):
        n = shape[-1]
        self.one("LayerNormalization", "s8_s8", "middle", shape, [(n,), (n,)], layer)
        self.one("LayerNormalization", "u8_s16", "middle", shape, [(n,)],
                 lambda x, scale, eps: layer(x, scale, None, eps))

    def test_several_axes(self):
        self.one("LayerNormalization", "u8_u8", "low", (1, 3, 4, 6), [(4, 6), (4, 6)],
                 lambda x, s, b, eps: layer(x, s, b, eps, axes=(-2, -1)), axis=-2)

    @for_each(*TYPES)
    def test_rms_normalization(self, types):
        from_, to = TYPES[types]
        for zero in ZEROS:
            m = Model(f"rms {types} {zero}")
            x = m.operand(Q(from_, 6.1 / (RANGES[from_][1] - RANGES[from_][0]), at(from_, ZEROS[zero])), (1, 7, 24))
            scale = m.rng.normal(1, 0.4, 24).astype(np.float32)
            m.floats(scale)
            want = layer(x, scale.astype(np.float64), None, 1e-5, centre=False)
            y = Q(to, 8.3 / (RANGES[to][1] - RANGES[to][0]), at(to, 0.43))
            model = m.finish("RMSNormalization", y, want.shape)
            model.opset_import[0].version = 23
            model.ir_version = 11
            with self.subTest(zero=zero):
                self.check(m, model, want, y)

    @for_each(*TYPES)
    def test_instance_normalization(self, types):
        for shape in ((2, 5, 6, 7), (1, 3, 200), (1, 2, 3, 4, 5)):
            axes = tuple(range(2, len(shape)))
            each = (slice(None), *(None for _ in axes))
            with self.subTest(shape=shape):
                self.one("InstanceNormalization", types, "middle", shape, [shape[1:2]] * 2,
                         lambda x, s, b, eps, axes=axes, each=each: layer(x, s[each], b[each], eps, axes=axes))

    @for_each("u8_u8", "s16_s16")
    def test_group_normalization(self, types):
        def want(x, s, b, eps):
            grouped = layer(x.reshape(2, 3, 2, 5, 5), 1, None, eps, axes=(2, 3, 4)).reshape(x.shape)
            return grouped * s[:, None, None] + b[:, None, None]
        self.one("GroupNormalization", types, "middle", (2, 6, 5, 5), [(6,), (6,)], want, num_groups=3)

    @for_each(0.0, 1e-12, 1e-5, 1.0, 1e6, 1e30)
    def test_epsilon(self, eps):
        """From one that counts for nothing to one that is all there is."""
        m = Model(f"epsilon {eps}")
        x = m.operand(Q(T.UINT8, 0.01, 77), (1, 9, 32))
        scale, bias = m.rng.normal(0, 1, 32).astype(np.float32), m.rng.normal(0, 1, 32).astype(np.float32)
        m.floats(scale)
        m.floats(bias)
        want = layer(x, scale.astype(np.float64), bias.astype(np.float64), float(np.float32(eps)))
        y = Q(T.INT8, 0.03, 3)
        self.check(m, m.finish("LayerNormalization", y, want.shape, epsilon=eps), want, y)

    @for_each(1e-8, 1e-3, 300.0, 1e12)
    def test_scales_of_x(self, step):
        m = Model(f"steps {step}")
        x = m.operand(Q(T.UINT8, step, 77), (1, 9, 32))
        m.floats(m.rng.normal(0, 1, 32))
        scale = onnx.numpy_helper.to_array(m.inits[-1]).astype(np.float64)
        want = layer(x, scale, None, float(np.float32(1e-5)))
        y = Q(T.INT8, 0.03, 3)
        self.check(m, m.finish("LayerNormalization", y, want.shape), want, y, least=0)

    @for_each(0.0, 1e-20, 1e-3, 40.0, 1e10)
    def test_scales_and_biases(self, size):
        """Results from all bias to all saturated, negative scales, one scale for all."""
        m = Model(f"size {size}")
        x = m.operand(Q(T.INT16, 0.0001, -300), (1, 9, 32))
        m.floats(m.rng.normal(0, size, 32))
        m.floats(m.rng.normal(0, 1, 32))
        scale, bias = (onnx.numpy_helper.to_array(t).astype(np.float64) for t in m.inits[-2:])
        want = layer(x, scale, bias, float(np.float32(1e-5)))
        y = Q(T.INT8, 0.03, 3)
        self.check(m, m.finish("LayerNormalization", y, want.shape), want, y, least=0)

    def test_constant_rows(self):
        """No deviation: the bias is left."""
        m = Model("constant")
        x = m.operand(Q(T.UINT8, 0.01, 77), (1, 3, 8))
        m.feeds["x0"][...] = np.array([0, 77, 255], np.uint8)[None, :, None]
        x = (m.feeds["x0"].astype(np.float64) - 77) * float(np.float32(0.01))
        m.floats(np.ones(8))
        m.floats(np.arange(8) / 10)
        want = layer(x, 1.0, np.float32(np.arange(8) / 10).astype(np.float64), 1e-5)
        y = Q(T.INT8, 0.03, 3)
        self.check(m, m.finish("LayerNormalization", y, want.shape), want, y)

    def test_quantized_scale(self):
        """As quantize_static writes it: the scale in int8, behind DequantizeLinear."""
        m = Model("quantized scale")
        x = m.operand(Q(T.UINT8, 0.03, 120), (1, 5, 16))
        scale = m.operand(Q(T.INT8, 0.01, 0), (16,), const=True)
        want = layer(x, scale, None, float(np.float32(1e-5)))
        y = Q(T.UINT8, 0.021, 128)
        self.check(m, m.finish("LayerNormalization", y, want.shape), want, y)

    def test_long_rows_of_16_bits(self):
        """Sums beyond 64 bits: computed in double, and said to be."""
        m = Model("long")
        x = m.operand(Q(T.INT16, 0.0001, 5), (1, 1, 70000))
        m.floats(1.5 * np.ones(1))
        m.floats(0.25 * np.ones(1))
        want = layer(x, 1.5, 0.25, float(np.float32(1e-5)), axes=(2,))
        y = Q(T.INT8, 0.03, 3)
        path = self.scratch / "long.onnx"
        onnx.save(m.finish("InstanceNormalization", y, want.shape), path)
        done = qxc(path, "-emit=c", "-integer-only", "-name=m", "-o", self.scratch / "long.c", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("computed in double: its rows are too long for sums in 64 bits", done.stderr)

    @for_each(*TYPES)
    def test_log_softmax(self, types):
        from_, to = TYPES[types]
        for shape, axis, span in (((1, 4, 10), -1, 20.0), ((2, 300), 1, 3.0), ((1, 7, 5), 1, 60.0), ((1, 3, 1), -1, 5.0),
                                  ((1, 5000), 1, 0.01)):
            with self.subTest(shape=shape, span=span):
                m = Model(f"log {types} {shape}")
                x = m.operand(Q(from_, span / (RANGES[from_][1] - RANGES[from_][0]), at(from_, 0.4)), shape)
                want = x - x.max(axis=axis, keepdims=True)
                want = want - np.log(np.exp(want).sum(axis=axis, keepdims=True))
                steps = RANGES[to][1] - RANGES[to][0]
                y = Q(to, max(1.02 * -want.min(), 0.1) / steps, RANGES[to][1])
                self.check(m, m.finish("LogSoftmax", y, want.shape, axis=axis), want, y, least=0)

    def lrn(self, types, zero, shape, size=5, alpha=1e-4, beta=0.75, bias=1.0, span=6.1, out=0.6):
        """`out`: how much of the span the largest results take; more than one are cut off."""
        from_, to = TYPES[types]
        m = Model(f"lrn {types} {zero} {shape} {size} {alpha} {beta} {bias}")
        x = m.operand(Q(from_, span / (RANGES[from_][1] - RANGES[from_][0]), at(from_, ZEROS[zero])), shape)
        want = local_response(x, size, alpha, beta, bias)
        y = Q(to, 2 * abs(want).max() / out / (RANGES[to][1] - RANGES[to][0]), at(to, 0.5))
        self.check(m, m.finish("LRN", y, want.shape, size=size, alpha=alpha, beta=beta, bias=bias), want, y, least=0.1)

    @for_each(*TYPES)
    def test_lrn(self, types):
        for zero in ZEROS:
            with self.subTest(zero=zero):
                self.lrn(types, zero, (1, 24, 7, 3))

    @for_each("u8_u8", "s16_s16")
    def test_lrn_attributes(self, types):
        """What it divides by is 1 but for little, spans many powers of two, or multiplies; windows of 1, of even length, of
        all channels and more; results that are cut off."""
        for more in ({"size": 1}, {"size": 4}, {"size": 31}, {"beta": 0.0}, {"beta": 0.5, "alpha": 3.0},
                     {"beta": 1.0, "alpha": 1e-9}, {"beta": -0.5, "alpha": 0.2}, {"beta": -1.5, "alpha": 1.0},
                     {"beta": 4.0, "alpha": 0.05}, {"alpha": 1.0, "bias": 1e-4}, {"alpha": 1.0, "bias": 1e4, "span": 5000.0},
                     {"alpha": 0.0, "bias": 2.0}, {"out": 2.0}):
            with self.subTest(**more):
                self.lrn(types, "middle", (2, 9, 40), **more)

    @for_each(("bias", -1.0, "what it divides by may be 0 or less"), ("beta", 4.5, "its beta is beyond 4"),
              ("alpha", 1e30, "its bias is nothing beside its sums of squares"))
    def test_lrn_stays(self, what):
        """Attributes that no network has: floating point, and the reason."""
        key, value, reason = what
        m = Model("lrn")
        x = m.operand(Q(T.UINT8, 0.03, 120), (1, 5, 16))
        path = self.scratch / "stays.onnx"
        onnx.save(m.finish("LRN", Q(T.UINT8, 0.03, 120), x.shape, **{"size": 3, key: value}), path)
        done = qxc(path, "-emit=c", "-integer-only", "-o", self.scratch / "stays.c", ok=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(reason, done.stderr)
        qxc(path, "-emit=c", "-o", self.scratch / "stays.c")


if __name__ == "__main__":
    unittest.main()
