"""Constants of products before they are quantized: Gemm's alpha, beta and shapes of C; weights and biases that
several nodes share; biases that int32 does not hold. Judged as in test_prepare.py."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import numpy_helper

from cmodel import CModel
from common import OracleCase, for_each, sqnr
from prepared import IMAGE, ROWS, Prepared, catalogue

CASES, case = catalogue()

# ---- Gemm

C = {"none": None, "number": (), "one_number": (1,), "columns": (5,), "a_row": (1, 5), "rows": (3, 1), "all": (3, 5),
     "one_by_one": (1, 1)}
FACTORS = {"": {}, "_beta": {"beta": 2.0}, "_alpha": {"alpha": 0.5}, "_alpha_and_beta": {"alpha": -1.5, "beta": 0.25},
           "_beta_0": {"beta": 0.0}, "_alpha_0": {"alpha": 0.0}}


def gemm(g, x="x", into=8, out=5, c=(5,), **attributes):
    shape = (out, into) if attributes.get("transB") else (into, out)
    bias = [] if c is None else [g.normal(*c)]
    return g.op("Gemm", x, g.normal(*shape, spread=0.4), *bias, **attributes)


for name, shape in C.items():
    for suffix, factors in FACTORS.items():
        @case(ROWS, name=f"gemm_{name}{suffix}", Gemm=1)
        def _(g, shape=shape, factors=factors):
            return gemm(g, c=shape, **factors)


@case(ROWS, Gemm=1)
def gemm_turned_weights(g):
    return gemm(g, transB=1, alpha=0.3, beta=3.0)


@case([("x", T.FLOAT, [8, 3])], Gemm=1)
def gemm_turned_data(g):
    return gemm(g, transA=1, alpha=0.3, beta=3.0)


@case([("x", T.FLOAT, [8, 3])], Gemm=1)
def gemm_both_turned(g):
    return gemm(g, transA=1, transB=1)


@case(ROWS, Gemm=1)
def gemm_beta_0_of_infinity(g):
    return g.op("Gemm", "x", g.normal(8, 5), g.const([np.inf, np.nan, 1, 1, 1]), beta=0.0)


@case(ROWS, Gemm=2)
def gemm_computed_c(g):
    return g.op("Gemm", "x", g.weight(8, 5), gemm(g), alpha=0.5, beta=2.0)


@case(ROWS, Gemm=1, Relu=1)
def gemm_computed_weights(g):
    return g.op("Relu", g.op("Gemm", g.weight(5, 3), "x", g.normal(8), alpha=0.5, beta=2.0))

# ---- shared constants


@case(Conv=2, Relu=1)
def one_weight_two_biases(g):
    weight = g.weight(4, 4, 3, 3)
    x = g.op("Relu", g.op("Conv", "x", weight, g.normal(4), pads=[1] * 4))
    return g.op("Conv", x, weight, g.normal(4), pads=[1] * 4)


@case(Conv=2, Relu=1)
def two_weights_one_bias(g):
    bias = g.normal(4)
    x = g.op("Relu", g.op("Conv", "x", g.weight(4, 4, 3, 3), bias, pads=[1] * 4))
    return g.op("Conv", x, g.weight(4, 4, 3, 3), bias, pads=[1] * 4)


@case(Conv=1, ConvTranspose=1, Relu=1)
def one_weight_along_two_axes(g):
    weight = g.weight(4, 4, 3, 3)
    x = g.op("Relu", g.op("Conv", "x", weight, g.normal(4), pads=[1] * 4))
    return g.op("ConvTranspose", x, weight, g.normal(4), pads=[1] * 4)


@case(ROWS, Gemm=2, Relu=1)
def one_weight_turned_once(g):
    weight, bias = g.weight(8, 8), g.normal(8)
    x = g.op("Relu", g.op("Gemm", "x", weight, bias))
    return g.op("Gemm", x, weight, bias, transB=1, beta=2.0)


@case([("x", T.FLOAT, [4, 4])], MatMul=1, Relu=1, Gemm=1, Add=1)
def weight_that_is_also_added(g):
    weight = g.weight(4, 4)
    x = g.op("Relu", g.op("MatMul", "x", weight))
    return g.op("Add", g.op("Gemm", x, weight, transB=1), weight)


@case([("x", T.INT64, [1, 5])], Gather=1, Relu=1, MatMul=2)
def embedding_tied_to_the_last_product(g):
    table = g.normal(10, 8)
    x = g.op("MatMul", g.op("Relu", g.op("Gather", table, "x")), g.weight(8, 8))
    return g.op("MatMul", x, g.op("Transpose", table, perm=[1, 0]))

# ---- biases beyond int32


def weights_with(g, factor, channel=1):
    weight = g.rng.normal(0, 0.3, (4, 4, 3, 3))
    weight[channel] *= factor
    return g.const(weight)


for name, factor in {"tiny": 1e-12, "no": 0.0}.items():
    @case(name=f"bias_of_a_channel_with_{name}_weights", Conv=1)
    def _(g, factor=factor):
        return g.op("Conv", "x", weights_with(g, factor), g.const([1.0, 3.0, -2.0, 0.5]))


@case(Conv=1)
def bias_of_zeros(g):
    return g.op("Conv", "x", g.const(np.zeros((4, 4, 3, 3))), g.const([1.0, 3.0, -2.0, 0.5]))


@case(Conv=1)
def bias_of_a_billion(g):
    return g.op("Conv", "x", g.weight(4, 4, 3, 3), g.const([1e9, 3.0, -2.0, 0.5]))


@case(Conv=2)
def bias_of_one_of_two_with_a_weight(g):
    weight = weights_with(g, 1e-12)
    x = g.op("Conv", "x", weight, g.const(np.zeros(4)), pads=[1] * 4)
    return g.op("Conv", x, weight, g.const([1.0, 1e3, 1.0, 1.0]), pads=[1] * 4)


@case(Mul=1, Conv=1)
def bias_that_no_scale_holds(g):
    return g.op("Conv", g.op("Mul", "x", g.const(1e-30)), g.weight(4, 4, 3, 3), g.const([1e30, 3.0, -2.0, 0.5]))


@case(floor=None, Conv=1)
def bias_of_infinity(g):
    return g.op("Conv", "x", g.weight(4, 4, 3, 3), g.const([np.inf, 3.0, -2.0, 0.5]))


OVERFLOW = "bias_of_a_channel_with_tiny_weights"
WEIGHTS = ("uint8 asym", "int8 asym", "uint8 sym", "int8 sym pow2", "int16 sym", "int8 sym reduce-range")


class Products(OracleCase):
    @for_each(*CASES)
    def test_is_prepared(self, name):
        one = Prepared(CASES[name], self.scratch)
        one.check_float(self)
        one.check_quantized(self)

    @for_each(*WEIGHTS)
    def test_bias_fits_for_all_weights(self, kind):
        one = Prepared(CASES[OVERFLOW], self.scratch)
        one.check_quantized(self, f"-weights={kind}")
        one.check_quantized(self, f"-weights={kind}", "-per-tensor")
        if "pow2" in kind:
            model = onnx.load(one.made("q.onnx", "-emit=qdq", f"-weights={kind}"))
            scale = next(t for t in model.graph.initializer if t.name == "c0_scale")
            self.assertEqual(set(np.frexp(numpy_helper.to_array(scale))[0]), {0.5})

    def test_bias_beyond_stated_scales_stays_float(self):
        """Nobody may touch the scales: the exact sum is the float model's with rounded weights."""
        one = Prepared(CASES[OVERFLOW], self.scratch)
        rules = self.scratch / "stated.scheme"
        rules.write_text('scheme {\n  value "c0" int8q<[0.008, 1e-14, 0.008, 0.008], 0, axis=0>\n}\n')
        one.check_quantized(self, f"-scheme={rules}")
        self.assertIn("bias 'c1' does not fit int32 at the scale of the accumulator and stays float", one.said)
        one.made("stated.c", "-emit=c", f"-scheme={rules}")
        model = CModel(self.scratch / "stated.c")
        got = np.stack([model.run(x)[0] for x in one.arrays["x"]])
        self.assertGreaterEqual(sqnr(one.want["y"], got), 30)

    def test_bias_and_sum_fit_together(self):
        """Where the bias takes almost all of int32 the sum would wrap around: there is room for both."""
        biases = np.array([1.0, -1.0, 1.0, -1.0])
        cases, add = catalogue()

        @add(IMAGE)
        def full(g):
            return g.op("Conv", g.op("Abs", "x"), g.const(np.full((4, 4, 8, 8), 0.3)), g.const(biases))
        one = Prepared(cases["full"], self.scratch)
        model = onnx.load(one.made("q.onnx", "-emit=qdq"))
        scale = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}["abs0_scale"]
        biases *= float(scale) * 0.3 / 127 * 0.9998 * 2**31
        one = Prepared(cases["full"], self.scratch)
        one.check_quantized(self)
        self.assertIn("4 of 4 weight scales raised", one.said)


if __name__ == "__main__":
    unittest.main()
