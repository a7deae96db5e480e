"""Functions of one 16-bit number on integers: every number there is, within a step of the exact result, which is
met nearly always; emitted C has the bits of `qxc run`, no floating point, and tables of a few KiB."""

import math
import re
import unittest

import numpy as np
import onnx
from onnx import TensorProto as T

from cmodel import CModel
from common import OracleCase, for_each, qxc
from test_quantized_ops import NUMPY, RANGES, Model, Q

BUILDS = {"plain": (), "sanitized": ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all")}
EACH = np.arange(65536)
erf = np.vectorize(math.erf)
OPS = {  # the function, the range of x, that of y, attributes, bytes that the table may take
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-9, 9), (0, 1), {}, 3072),
    "Tanh": (np.tanh, (-5, 7), (-1, 1), {}, 3200),
    "Gelu": (lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), (-6, 5), (-0.2, 5), {}, 2048),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), (-7, 8), (-0.4, 8), {}, 6144),
    "HardSigmoid": (lambda x: np.clip(0.2 * x + 0.5, 0, 1), (-7, 8), (0, 1), {}, 4608),
    "LeakyRelu": (lambda x: np.where(x < 0, 0.125 * x, x), (-7, 8), (-1, 8), {"alpha": 0.125}, 128),
    "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), (-7, 8), (-1, 8), {}, 2048),
    "Abs": (np.abs, (-7, 8), (0, 8), {}, 256),
    "Exp": (np.exp, (-7, 4), (0, 50), {}, 4096),
    "Log": (np.log, (0.001, 8), (-7, 2.1), {}, 8192),
    "Sqrt": (np.sqrt, (0, 8), (0, 3), {}, 4096),
    "Reciprocal": (lambda x: 1 / x, (-3, 5), (-900, 900), {}, 16384),
    "Round": (np.rint, (-7, 8), (-7, 8), {}, 16384),
    "Sign": (np.sign, (-7, 8), (-1.01, 1), {}, 4608),
    "Sin": (np.sin, (-20, 17), (-1, 1), {}, 26000),
}
NEVER_SMOOTH = ("Sin", 3000.0)  # each number takes an entry


def fitted(elem, low, high):
    lo, hi = RANGES[elem]
    scale = float(np.float32((max(high, 0) - min(low, 0)) / (hi - lo)))
    return Q(elem, scale, min(hi, max(lo, round(lo - min(low, 0) / scale))))


class Curves(OracleCase):
    def check(self, op, fn, x, y, attrs, table):
        m = Model(op)
        m.operand(x, (1, 65536))
        lo, _ = RANGES[x.elem]
        m.feeds["x0"] = (EACH + lo).astype(NUMPY[x.elem])[None]
        # the operand as float32 holds it: what a table is made of
        real = ((EACH + lo - int(x.zp)).astype(np.float32) * x.scale).astype(np.float64)
        with np.errstate(all="ignore"):
            want = fn(real)
        good = ~np.isnan(want)
        with np.errstate(all="ignore"):
            expect = y.ints(np.nan_to_num(want, nan=0, posinf=1e30, neginf=-1e30))
        path, out = self.scratch / "m.onnx", self.scratch / "y.npz"
        onnx.save(m.finish(op, y, (1, 65536), **attrs), path)
        np.savez(self.scratch / "x.npz", **m.feeds)
        qxc("run", path, f"-input={self.scratch / 'x.npz'}", "-o", out)
        have = np.load(out)["y"].astype(np.int64).ravel()
        away = np.abs(have - expect)[good]
        self.assertLessEqual(away.max(), 1, f"{EACH[good][away > 1][:5]}")
        self.assertLess((away > 0).mean(), 0.2)
        done = qxc(path, "-emit=c", "-integer-only", "-name=m", "-no-sync", "-o", self.scratch / "m.c")
        self.assertIn("no floating point", done.stderr)
        self.assertLessEqual(int(re.search(r"tables (\d+) bytes", done.stderr)[1]), table)
        for build, flags in BUILDS.items():
            with self.subTest(build=build):
                got = CModel(self.scratch / "m.c", "gcc", ("-O1", *flags)).run(m.feeds["x0"])[0]
                np.testing.assert_array_equal(got, have)

    @for_each(*OPS)
    def test_each(self, op):
        fn, (a, b), (c, d), attrs, table = OPS[op]
        for from_, to in ((T.INT16, T.INT16), (T.UINT16, T.UINT16), (T.INT16, T.UINT8)):
            with self.subTest(types=(from_, to)):
                self.check(op, fn, fitted(from_, a, b), fitted(to, c, d), attrs, table)

    @for_each(T.INT16, T.UINT16)
    def test_zero_points_at_the_ends(self, elem):
        for zp in RANGES[elem]:
            with self.subTest(zp=zp):
                span = 12 / 65535
                low = (RANGES[elem][0] - zp) * span
                self.check("Sigmoid", OPS["Sigmoid"][0], Q(elem, span, zp), fitted(elem, 0, 1), {}, 3072)
                self.check("LeakyRelu", OPS["LeakyRelu"][0], Q(elem, span, zp), fitted(elem, low, low + 12),
                           {"alpha": 0.125}, 128)

    def test_saturation(self):
        """Results beyond y's range on both sides: it ends where they reach it, not before."""
        self.check("Exp", np.exp, fitted(T.INT16, -7, 7), fitted(T.INT16, 0, 3), {}, 8192)
        self.check("Neg", np.negative, fitted(T.INT16, -7, 7), fitted(T.INT8, -1, 1), {}, 4096)

    def test_an_entry_for_each(self):
        op, steep = NEVER_SMOOTH
        x, y = Q(T.INT16, steep / 32768, 5), fitted(T.INT16, -1, 1)
        self.check(op, np.sin, x, y, {}, 131200)


if __name__ == "__main__":
    unittest.main()
