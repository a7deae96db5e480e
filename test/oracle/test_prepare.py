"""What is folded before a model is quantized: BatchNormalization, Mul, Add and Pad into what is before
or behind them, nodes that do nothing, constants. Each case says what is left of it; the float
outputs stay those of onnxruntime within 1e-5 of the largest, and the quantized model is good."""

import unittest

import numpy as np
import onnx
from onnx import helper

from common import OracleCase, for_each
from prepared import IMAGE, ROWS, TOKENS, Prepared, catalogue

CASES, case = catalogue()

# ---- BatchNormalization


@case(Conv=1)
def norm_behind_conv(g):
    return g.norm(g.conv("x", bias=False), 6)


@case(Conv=1, Relu=1)
def norm_behind_conv_with_bias(g):
    return g.op("Relu", g.norm(g.conv("x"), 6))


@case(opset=10, Conv=1)
def norm_of_opset_10(g):
    return g.norm(g.conv("x"), 6)


@case(Conv=1)
def norm_behind_groups(g):
    return g.norm(g.conv("x", out=8, group=2), 8)


@case(Conv=1)
def norm_with_tiny_variance(g):
    return g.norm(g.conv("x"), 6, variance=[0, 1, 1, 1e-12, 1, 2])


@case(Conv=1)
def norm_with_computed_scale(g):
    one = g.const(np.ones(6))
    return g.op("BatchNormalization", g.conv("x"), g.op("Add", one, one), *[g.const(np.zeros(6))] * 2, one)


@case(Conv=2)
def norms_behind_convs_of_one_weight(g):
    weight, bias = g.weight(4, 4, 3, 3), g.normal(4)
    x = g.norm(g.op("Conv", "x", weight, bias, pads=[1] * 4), 4)
    return g.norm(g.op("Conv", x, weight, bias, pads=[1] * 4), 4)


@case(Conv=2, Relu=1, Add=1)
def norm_of_a_result_read_twice(g):
    """Not into the first Conv: a Conv of its own, one number a channel."""
    x = g.conv("x")
    return g.op("Add", g.norm(x, 6), g.op("Relu", x))


@case(Conv=2)
def norm_of_an_output(g):
    x = g.conv("x")
    return x, g.norm(x, 6)


@case(Conv=2)
def norm_before_conv_with_padding(g):
    """Padding is 0 behind the normalization, not before it."""
    return g.conv(g.norm("x", 4), pads=[1] * 4)


@case(ConvTranspose=1)
def norm_behind_transposed_conv(g):
    return g.norm(g.op("ConvTranspose", "x", g.weight(4, 6, 3, 3), strides=[2, 2]), 6)


@case(ConvTranspose=1, Conv=1)
def norm_behind_transposed_conv_in_groups(g):
    """Its weights, [C, M / group, ...], have no axis of channels."""
    x = g.op("ConvTranspose", "x", g.weight(4, 3, 3, 3), g.normal(6), strides=[2, 2], group=2)
    return g.norm(x, 6)


@case(ROWS, Gemm=1)
def norm_behind_gemm(g):
    return g.norm(g.op("Gemm", "x", g.weight(8, 5), g.normal(5)), 5)


@case(ROWS, Gemm=1)
def norm_behind_matmul(g):
    return g.norm(g.op("MatMul", "x", g.weight(8, 5)), 5)


@case(ROWS, BatchNormalization=1, Relu=1)
def norm_of_rows_alone(g):
    return g.op("Relu", g.norm("x", 8))


@case([("x", 1, [1, 4, 16])], Conv=1)
def norm_behind_conv_in_one_dimension(g):
    return g.norm(g.op("Conv", "x", g.weight(6, 4, 3)), 6)

# ---- Mul, Add, Sub, Div


for name, left, shape in (
        ("number", {}, ()), ("one_number", {}, (1,)), ("channels", {}, (6, 1, 1)),
        ("channels_of_rank_4", {}, (1, 6, 1, 1)), ("columns", {"Mul": 1}, (6,)), ("all", {"Mul": 1}, (1, 6, 6, 6)),
        ("more_images", {"Mul": 1}, (2, 6, 1, 1)), ("more_dimensions", {"Mul": 1}, (1, 1, 6, 1, 1))):
    @case(name=f"mul_by_{name}", Conv=1, **left)
    def _(g, shape=shape):
        return g.op("Mul", g.conv("x"), g.const(g.rng.uniform(0.3, 1, shape)))


@case(Conv=1)
def mul_and_add(g):
    x = g.op("Mul", g.normal(6, 1, 1), g.conv("x"))
    return g.op("Add", x, g.normal(1, 6, 1, 1))


@case(Conv=1)
def sub_from_constant(g):
    return g.op("Sub", g.normal(6, 1, 1), g.conv("x"))


@case(Conv=1)
def div_by_constant(g):
    return g.op("Div", g.conv("x"), g.const(g.rng.uniform(1, 2, (6, 1, 1))))


@case(Conv=1, Mul=1)
def mul_that_makes_channels(g):
    return g.op("Mul", g.conv("x", out=1), g.normal(6, 1, 1))


@case(Conv=1, Mul=1)
def mul_by_itself(g):
    x = g.conv("x")
    return g.op("Mul", x, x)


@case(floor=None, Conv=1, Mul=1)
def mul_by_infinity(g):
    """Infinite weights would make NaN of sums."""
    return g.op("Mul", g.conv("x"), g.const(np.where(np.arange(6) == 1, np.inf, 1).reshape(6, 1, 1)))


@case(TOKENS, MatMul=1, Softmax=1)
def mul_of_a_product(g):
    return g.op("Softmax", g.op("Mul", g.op("MatMul", "x", g.weight(8, 8)), g.const(0.125)), axis=-1)


@case(TOKENS, Reshape=2, Gemm=1)
def mul_and_add_of_columns(g):
    x = g.op("Mul", g.op("MatMul", "x", g.weight(8, 8)), g.normal(8))
    return g.op("Add", x, g.normal(8))

# ---- Pad


for name, left, options in (
        ("zeros", {}, {}), ("stated_zero", {}, {"value": 0.0}), ("negative_zero", {}, {"value": -0.0}),
        ("a_number", {"Pad": 1}, {"value": 1.5}), ("reflection", {"Pad": 1}, {"mode": "reflect"}),
        ("edge", {"Pad": 1}, {"mode": "edge"})):
    @case(name=f"pad_with_{name}", Conv=1, **left)
    def _(g, options=options):
        return g.conv(g.pad("x", [0, 0, 1, 2, 0, 0, 2, 1], **options))


@case(opset=19, Pad=1, Conv=1)
def pad_that_wraps(g):
    return g.conv(g.pad("x", [0, 0, 1, 1, 0, 0, 1, 1], mode="wrap"))


@case(opset=18, Conv=1)
def pad_of_axes(g):
    return g.conv(g.pad("x", [1, 2, 0, 1], axes=[-1, 2]))


@case(opset=10, Conv=1)
def pad_of_opset_10(g):
    return g.conv(g.op("Pad", "x", pads=[0, 0, 1, 1, 0, 0, 1, 1]))


@case(Conv=1)
def pad_by_what_is_computed(g):
    ends = g.ints(0, 0, 1, 1)
    return g.conv(g.op("Pad", "x", g.op("Concat", ends, ends, axis=0)))


@case(Pad=1, Conv=1)
def pad_that_cuts(g):
    return g.conv(g.pad("x", [0, 0, -1, 1, 0, 0, 1, -1]))


@case(Pad=1, Conv=1)
def pad_of_channels(g):
    return g.conv(g.pad("x", [0, 1, 1, 1, 0, 1, 1, 1]), into=6)


@case(Conv=1)
def pad_before_pads(g):
    return g.conv(g.pad("x", [0, 0, 1, 0, 0, 0, 1, 2]), pads=[1, 0, 0, 1])


@case(Conv=1)
def pad_before_valid(g):
    return g.conv(g.pad("x", [0, 0, 1, 0, 0, 0, 1, 2]), auto_pad="VALID", strides=[2, 2])


@case(Pad=1, Conv=1)
def pad_before_same(g):
    return g.conv(g.pad("x", [0, 0, 1, 1, 0, 0, 1, 1]), auto_pad="SAME_UPPER", strides=[2, 2])


@case(Conv=2, Add=1)
def pad_before_two_convs(g):
    x = g.pad("x", [0, 0, 1, 1, 0, 0, 1, 1])
    return g.op("Add", g.conv(x), g.conv(x))


@case(Conv=1, Pad=1, Slice=1, Add=1)
def pad_that_something_else_reads(g):
    x = g.pad("x", [0, 0, 1, 1, 0, 0, 1, 1])
    part = g.op("Slice", x, g.ints(0, 0), g.ints(8, 8), g.ints(2, 3))
    return g.op("Add", g.conv(x, out=4), part)


@case(Pad=1, ConvTranspose=1)
def pad_before_transposed_conv(g):
    return g.op("ConvTranspose", g.pad("x", [0, 0, 1, 1, 0, 0, 1, 1]), g.weight(4, 6, 3, 3))


@case(Conv=1, AveragePool=1)
def pad_before_average(g):
    x = g.pad(g.conv("x"), [0, 0, 1, 1, 0, 0, 1, 1])
    return g.op("AveragePool", x, kernel_shape=[3, 3])


@case(Conv=1, Pad=1, AveragePool=1)
def pad_before_average_that_pads(g):
    x = g.pad(g.conv("x"), [0, 0, 1, 1, 0, 0, 1, 1])
    return g.op("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)


@case(Conv=1, Pad=1, AveragePool=1)
def pad_before_average_that_overhangs(g):
    x = g.pad(g.conv("x"), [0, 0, 1, 1, 0, 0, 0, 0])
    return g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)


@case(Conv=1, Relu=1, MaxPool=1)
def pad_before_maximum_of_relu(g):
    x = g.pad(g.op("Relu", g.conv("x")), [0, 0, 1, 1, 0, 0, 1, 1])
    return g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])


@case(Conv=1, Pad=1, MaxPool=1)
def pad_before_maximum_of_any(g):
    x = g.pad(g.conv("x"), [0, 0, 1, 1, 0, 0, 1, 1])
    return g.op("MaxPool", x, kernel_shape=[3, 3])


@case(floor=None, Conv=1, Relu=1, Pad=1, MaxPool=1)
def pad_wider_than_the_maximum(g):
    """Which onnxruntime makes one node of all the same, and then refuses."""
    x = g.pad(g.op("Relu", g.conv("x")), [0, 0, 2, 2, 0, 0, 2, 2])
    return g.op("MaxPool", x, kernel_shape=[2, 2])

# ---- what does nothing


for name, build in {
        "identity": lambda g, x: g.op("Identity", x),
        "dropout": lambda g, x: g.op("Dropout", x),
        "dropout_that_may_train": lambda g, x: g.op("Dropout", x, g.const(0.5), g.const(False, bool)),
        "cast": lambda g, x: g.op("Cast", x, to=1),
        "reshape": lambda g, x: g.op("Reshape", x, g.ints(1, 6, -1, 6)),
        "transpose": lambda g, x: g.op("Transpose", x, perm=[0, 1, 2, 3]),
        "slice": lambda g, x: g.op("Slice", x, g.ints(0), g.ints(2**40), g.ints(1)),
        "expand": lambda g, x: g.op("Expand", x, g.ints(6, 1, 1)),
        "pad": lambda g, x: g.pad(x, [0] * 8),
        "tile": lambda g, x: g.op("Tile", x, g.ints(1, 1, 1, 1)),
        "concat": lambda g, x: g.op("Concat", x, axis=1),
        "sum": lambda g, x: g.op("Sum", x),
        "max": lambda g, x: g.op("Max", x),
        "mul": lambda g, x: g.op("Mul", x, g.const(1.0)),
        "add": lambda g, x: g.op("Add", g.const([[[0.0]]]), x),
        "div": lambda g, x: g.op("Div", x, g.const(1.0)),
        "several": lambda g, x: g.op("Identity", g.op("Dropout", g.op("Identity", x)))}.items():
    @case(name=f"idle_{name}", Conv=1, Relu=1)
    def _(g, build=build):
        return g.op("Relu", g.norm(build(g, g.conv("x")), 6))


@case(Conv=1, Dropout=1, Cast=1, Mul=1)
def dropout_whose_mask_is_read(g):
    x, mask = g.op("Dropout", g.conv("x"), results=2)
    return g.op("Mul", x, g.op("Cast", mask, to=1))


@case(Conv=1, Transpose=1)
def transpose_of_equal_dimensions(g):
    return g.op("Transpose", g.conv("x"), perm=[0, 1, 3, 2])


@case(Conv=1, Slice=1)
def slice_backwards(g):
    return g.op("Slice", g.conv("x"), g.ints(-1), g.ints(-2**40), g.ints(1), g.ints(-1))


@case(Conv=1, Pad=1)
def pad_that_shifts(g):
    return g.pad(g.conv("x"), [0, 0, 1, -1, 0, 0, -1, 1])


@case(Conv=1, Add=1)
def add_that_grows(g):
    return g.op("Add", g.conv("x"), g.const(np.zeros((2, 1, 1, 1))))


@case(Conv=1)
def identity_of_the_output(g):
    return g.op("Identity", g.op("Identity", g.conv("x")))


@case(Conv=1, Identity=1)
def identity_of_an_output(g):
    x = g.conv("x")
    return x, g.op("Identity", x)


@case(Identity=1, Conv=1)
def identity_from_input_to_output(g):
    return g.op("Identity", "x"), g.conv("x")


@case(Conv=1)
def identity_of_the_input(g):
    return g.conv(g.op("Identity", "x"))

# ---- constants


@case(Conv=1)
def weights_through_identities(g):
    return g.op("Conv", "x", g.op("Identity", g.weight(4, 4, 3, 3)), g.op("Identity", g.normal(4)))


@case(Conv=1)
def weights_that_are_computed(g):
    size = g.op("Reciprocal", g.const(g.rng.uniform(1, 2, (4, 1, 1, 1))))
    return g.op("Conv", "x", g.op("Mul", g.weight(4, 4, 3, 3), size))


@case(Conv=1)
def weights_in_parts(g):
    return g.op("Conv", "x", g.op("Concat", g.weight(2, 4, 3, 3), g.weight(2, 4, 3, 3), axis=0))


@case(Conv=1, Reshape=1)
def shape_that_is_computed(g):
    x = g.conv("x")
    start = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(2))
    return g.op("Reshape", x, g.op("Concat", start, g.ints(-1), axis=0))


class Prepare(OracleCase):
    @for_each(*CASES)
    def test_is_prepared(self, name):
        one = Prepared(CASES[name], self.scratch)
        one.check_float(self)
        one.check_quantized(self)

    def test_training_stays_float(self):
        """Statistics of the batch are nobody's constants: the node is named, and neither folded nor quantized."""
        def build(g):
            x = g.conv("x")
            ones, zeros = g.const(np.ones(6)), g.const(np.zeros(6))
            g.nodes.append(helper.make_node("BatchNormalization", [x, ones, zeros, zeros, ones], ["n", "mean", "var"],
                                            name="n", training_mode=1))
            return "n"
        cases, add = catalogue()
        add(IMAGE)(build)
        one = Prepared(cases["build"], self.scratch)
        made = one.made("trained.onnx", "-emit=qdq")
        self.assertRegex(one.said, r"1 BatchNormalization \(first: n\)")
        graph = onnx.load(made).graph
        self.assertEqual([n.op_type for n in graph.node][-4:], ["Conv", "QuantizeLinear", "DequantizeLinear", "BatchNormalization"])
        self.assertEqual([o.name for o in graph.output], [graph.node[-1].output[0]])  # float, as nothing behind quantizes it


if __name__ == "__main__":
    unittest.main()
