"""Which values share a range, and where a range ends: Relu and Clip where they are exact, equal scales for
what Concat and data movers join, masks in front of Softmax. Judged as in test_prepare.py."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto as T

from common import OracleCase, for_each, qxc, run_samples, session
from prepared import IMAGE, Prepared, catalogue

CASES, case = catalogue()

# ---- Relu, Clip


@case(Conv=2, Relu=1)
def relu(g):
    return g.conv(g.op("Relu", g.conv("x")), into=6)


@case(Conv=3, Relu=1, Add=1)
def relu_of_what_is_read_twice(g):
    x = g.conv("x", out=4)
    return g.op("Add", g.conv(g.op("Relu", x)), g.conv(x))


@case(Conv=2, Relu=1)
def relu_that_is_an_output(g):
    x = g.op("Relu", g.conv("x"))
    return x, g.conv(x, into=6)


@case(Conv=1, Relu=1)
def relu_of_the_input(g):
    return g.conv(g.op("Relu", "x"))


@case(Conv=1, Relu=1, Clip=1)
def clip_of_relu(g):
    return g.clip(g.op("Relu", g.conv("x")), -1.0, 1.0)


@case(Conv=1, Relu=1, Clip=1, MaxPool=1)
def relu_of_clip(g):
    return g.op("MaxPool", g.op("Relu", g.clip(g.conv("x"), -0.5, 1.0)), kernel_shape=[2, 2])


@case(Conv=1, MaxPool=1, Relu=1)
def relu_behind_maximum(g):
    return g.op("Relu", g.op("MaxPool", g.conv("x"), kernel_shape=[2, 2]))


@case(Conv=1, Max=1, Min=1)
def relu6_as_max_and_min(g):
    return g.op("Min", g.op("Max", g.conv("x"), g.const(0.0)), g.const(6.0))


@case(opset=10, Conv=1, Clip=1)
def clip_of_opset_10(g):
    return g.op("Clip", g.conv("x"), min=0.0, max=6.0)


for name, bounds in {
        "relu6": (0.0, 6.0), "both_sides": (-0.2, 0.3), "above_0": (0.5, 2.0), "below_0": (-3.0, -0.5),
        "no_bounds": (None, None), "low": (-0.1, None), "high": (None, 0.4), "bounds_reversed": (1.0, -1.0),
        "low_nan": (np.nan, 1.0), "high_nan": (0.0, np.nan), "one_number": (0.5, 0.5), "zero": (0.0, 0.0),
        "infinities": (-np.inf, np.inf)}.items():
    @case(name=f"clip_{name}", Conv=2, Clip=1)
    def _(g, bounds=bounds):
        return g.conv(g.clip(g.conv("x"), *bounds), into=6)

# ---- Concat and data movers


@case(Conv=3, Relu=1, Concat=1)
def concat_of_convs(g):
    x = g.op("Concat", g.conv("x", pads=[1] * 4), g.op("Relu", g.conv("x", pads=[1] * 4)), axis=1)
    return g.conv(x, into=12)


@case(Conv=2, Concat=1)
def concat_with_constant(g):
    return g.conv(g.op("Concat", g.conv("x"), g.normal(1, 2, 6, 6), axis=1), into=8)


@case(Conv=2, Concat=1)
def concat_with_input(g):
    return g.conv(g.op("Concat", g.conv("x", pads=[1] * 4), "x", axis=1), into=10)


@case(Conv=2, Concat=1)
def concat_of_one_value_twice(g):
    x = g.conv("x")
    return g.conv(g.op("Concat", x, x, axis=1), into=12)


@case(IMAGE + [("z", T.FLOAT, [1, 4, 8, 8])], Concat=1, Conv=1)
def concat_of_inputs(g):
    return g.conv(g.op("Concat", "x", "z", axis=1), into=8)


@case(Conv=2, Sigmoid=1, Mul=1, Concat=1)
def concat_of_unequal_ranges(g):
    large = g.op("Mul", g.op("Sigmoid", g.conv("x")), g.const(100.0))
    return g.op("Concat", g.conv("x"), large, axis=1)


@case(Conv=3, Concat=2)
def concat_of_concat(g):
    x = g.conv("x")
    return g.conv(g.op("Concat", g.op("Concat", x, g.conv("x"), axis=1), x, axis=1), into=18)


@case(Conv=2, Softmax=1, Concat=1)
def concat_of_softmax(g):
    """Whose scale follows from the operator."""
    return g.op("Concat", g.conv("x"), g.op("Softmax", g.conv("x"), axis=1), axis=1)


@case(Conv=2, Relu=2, MaxPool=1, AveragePool=1, Concat=1, Transpose=1)
def concat_of_pools(g):
    most = g.op("MaxPool", g.op("Relu", g.conv("x")), kernel_shape=[2, 2])
    mean = g.op("AveragePool", g.op("Relu", g.conv("x")), kernel_shape=[2, 2])
    return g.op("Transpose", g.op("Concat", most, mean, axis=1), perm=[0, 2, 3, 1])


@case(Conv=1, Split=1, Sigmoid=1, Concat=1)
def concat_of_parts(g):
    a, b = g.op("Split", g.conv("x"), g.ints(2, 4), results=2, axis=1)
    return g.op("Concat", g.op("Sigmoid", a), b, axis=1)


@case(Conv=1, Split=1, Relu=1)
def split_with_a_part_unread(g):
    return g.op("Relu", g.op("Split", g.conv("x"), g.ints(2, 4), results=2, axis=1)[1])


@case(Conv=1, Transpose=1, Reshape=1, Slice=1, MatMul=1)
def movers_in_a_row(g):
    x = g.op("Reshape", g.op("Transpose", g.conv("x"), perm=[0, 2, 3, 1]), g.ints(1, 36, 6))
    return g.op("MatMul", g.op("Slice", x, g.ints(0), g.ints(30), g.ints(1)), g.weight(6, 3))


@case(Conv=1, Flatten=1, Relu=1, Tanh=1, Add=1)
def mover_that_two_read(g):
    x = g.op("Flatten", g.conv("x"))
    return g.op("Add", g.op("Relu", x), g.op("Tanh", x))

# ---- masks: scores from the input, and what hides some of them

SCORES = [("x", T.FLOAT, [1, 2, 6, 6])]
LOWEST = float(np.finfo(np.float32).min)


def soft(g, masked):
    return g.op("MatMul", g.op("Softmax", masked, axis=-1), g.weight(1, 2, 6, 4))


def hidden(value):
    mask = np.zeros((1, 1, 6, 6))
    mask[..., 4:] = value
    return mask


for name, value in {"10000": -1e4, "a_billion": -1e9, "the_lowest": LOWEST, "infinity": -np.inf}.items():
    @case(SCORES, name=f"mask_added_{name}", Add=1, Softmax=1, MatMul=1)
    def _(g, value=value):
        return soft(g, g.op("Add", g.op("Abs", "x") if value is None else "x", g.const(hidden(value))))

    @case(SCORES, name=f"mask_chosen_{name}", Where=1, Softmax=1, MatMul=1)
    def _(g, value=value):
        return soft(g, g.op("Where", g.const(hidden(1), bool), g.const(value), "x"))


@case(SCORES, Add=1, Max=1, Softmax=1, MatMul=1)
def mask_kept_from_infinity(g):
    return soft(g, g.op("Max", g.op("Add", "x", g.const(hidden(LOWEST))), g.const(LOWEST)))


@case(SCORES, Add=2, Softmax=2, MatMul=2, Sub=1)
def mask_of_two_layers(g):
    mask = g.const(hidden(-1e4))
    return g.op("Sub", soft(g, g.op("Add", "x", mask)), soft(g, g.op("Add", mask, g.op("Mul", "x", g.const(1.0)))))


@case(SCORES, Add=1, Softmax=1, MatMul=1)
def bias_that_falls_with_distance(g):
    at = np.arange(6.0)
    return soft(g, g.op("Add", "x", g.const(-8 * np.abs(at[:, None] - at)[None, None])))


class Ranges(OracleCase):
    @for_each(*CASES)
    def test_is_prepared(self, name):
        one = Prepared(CASES[name], self.scratch)
        one.check_float(self)
        one.check_quantized(self)

    def test_joined_values_share_a_scale(self):
        """Bytes are copied then; Relu's integers keep their own where the result goes below 0."""
        for name, op in {"concat_of_pools": "Concat", "concat_with_constant": "Concat", "concat_with_input": "QLinearConcat",
                         "concat_of_convs": "QLinearConcat", "concat_of_softmax": "QLinearConcat",
                         "concat_of_concat": "QLinearConcat"}.items():
            one = Prepared(CASES[name], self.scratch)
            nodes = onnx.load(one.made("joined.onnx", "-emit=qop", "-placement=all")).graph.node
            self.assertIn(op, {n.op_type for n in nodes}, name)
            scales = [len({n.input[0], *n.input[3::3]}) for n in nodes if n.op_type == "QLinearConcat"]
            self.assertTrue(all(count == 2 for count in scales), name)

    def test_mask_that_is_an_input(self):
        """-10000 where the mask has 0, as BERT has it; samples of all lengths."""
        cases, add = catalogue()

        @add(SCORES + [("mask", T.INT64, [1, 6])])
        def masked(g):
            keep = g.op("Cast", g.op("Unsqueeze", "mask", g.ints(1, 2)), to=1)
            hide = g.op("Mul", g.op("Sub", g.const(1.0), keep), g.const(-1e4))
            return soft(g, g.op("Add", "x", hide))
        one = Prepared(cases["masked"], self.scratch)
        one.arrays["mask"] = (np.arange(6) < 1 + np.arange(20)[:, None] % 6).astype(np.int64)
        np.savez(one.calib, **one.arrays)
        one.want = run_samples(session(one.model), one.model, one.arrays)
        one.check_quantized(self)

    def test_a_range_that_all_of_counts(self):
        """Numbers far below others are no mask where another operator reads them, or rows lie there whole."""
        def range_of(build):
            cases, add = catalogue()
            add(SCORES)(build)
            one = Prepared(cases["build"], self.scratch)
            one.arrays["x"] = one.arrays["x"] - 90 * (np.arange(20) % 2).reshape(20, 1, 1, 1).astype(np.float32)
            np.savez(one.calib, **one.arrays)
            # What is named is quantized, though 8 bits lose much of this sum in front of the first product.
            qxc(one.path, f"-calib={one.calib}", "-only=Add,Softmax,MatMul", "-quiet", "-no-sync", "-o",
                self.scratch / "fake.qir")
            return next(line for line in (self.scratch / "fake.qir").read_text().splitlines()
                        if line.startswith("quant !masked"))

        def build(g):
            g.op("Add", "x", g.const(hidden(0.0) + np.eye(6)))
            g.nodes[-1].output[0] = "masked"
            return soft(g, "masked")
        self.assertIn("uint8q<0.3", range_of(build))  # (4 + 94) / 255


if __name__ == "__main__":
    unittest.main()
