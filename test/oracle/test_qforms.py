"""QDQ -> QOperator -> QDQ, one layer at a time, each fed the same integers.

The QOperator form in onnxruntime equals `qxc run` bit for bit (one step for operators that round
in a way of their own); the QDQ form that comes back computes in onnxruntime, unfused, the very
floats of the model as it came; and onnxruntime fuses it into what qxc wrote as QOperators.
"""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, qxc_outputs, session

U8, S8 = np.uint8, np.int8
ONNX_TYPE = {U8: TensorProto.UINT8, S8: TensorProto.INT8, np.float32: TensorProto.FLOAT}
SAMPLES = 4


class Net:
    """A QDQ model in the making: integers in, integers out."""

    def __init__(self, opset=17, seed=0):
        self.opset, self.rng = opset, np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def name(self, stem):
        return f"{stem}_{len(self.nodes)}_{len(self.constants)}"

    def constant(self, stem, array):
        name = self.name(stem)
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, outputs=None, **attributes):
        outputs = outputs or [self.name(op.lower())]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op}_{len(self.nodes)}",
                                           **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def params(self, scale, zero):
        return [self.constant("scale", np.asarray(scale, np.float32)), self.constant("zero", zero)]

    def dequantize(self, name, scale, zero, **attributes):
        return self.node("DequantizeLinear", [name, *self.params(scale, zero)], **attributes)

    def quantize(self, name, scale, zero, out=None):
        return self.node("QuantizeLinear", [name, *self.params(scale, zero)], out and [out])

    def input(self, shape, scale, zero, dtype):
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, shape, dtype))
        return self.dequantize(name, scale, dtype(zero))

    def float_input(self, shape, scale, zero, dtype):
        """Integers with a QuantizeLinear of their own, without which QOperators that only move
        data would not say what the integers mean."""
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, shape, np.float32))
        return self.dequantize(self.quantize(name, scale, dtype(zero)), scale, dtype(zero))

    def output(self, name, scale, zero, dtype):
        self.outputs.append((f"y{len(self.outputs)}", dtype))
        return self.quantize(name, scale, dtype(zero), self.outputs[-1][0])

    def weights(self, shape, axis, per_channel, dtype=S8):
        lo, hi = (-127, 127) if dtype is S8 else (0, 255)
        data = self.rng.integers(lo, hi, shape, endpoint=True).astype(dtype)
        name = self.constant("w", data)
        zero = dtype(0 if dtype is S8 else 120)
        if not per_channel:
            self.w_scale = np.float32(0.0123)
            return self.dequantize(name, self.w_scale, zero)
        self.w_scale = self.rng.uniform(0.002, 0.02, shape[axis]).astype(np.float32)
        return self.dequantize(name, self.w_scale, np.full(shape[axis], zero, dtype), axis=axis)

    def bias(self, n, x_scale):
        data = self.rng.integers(-3000, 3000, n).astype(np.int32)
        scale = np.float32(x_scale) * self.w_scale
        zero = np.zeros(scale.shape, np.int32) if scale.ndim else np.int32(0)
        axis = {"axis": 0} if scale.ndim else {}
        return self.dequantize(self.constant("b", data), scale, zero, **axis)

    def model(self):
        graph = helper.make_graph(
            self.nodes, "net",
            [helper.make_tensor_value_info(n, ONNX_TYPE[t], s) for n, s, t in self.inputs],
            [helper.make_tensor_value_info(n, ONNX_TYPE[t], None) for n, t in self.outputs],
            self.constants)
        model = helper.make_model(graph, ir_version=8,
                                  opset_imports=[helper.make_opsetid("", self.opset)])
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    def data(self):
        return {n: self.rng.normal(0, 3, (SAMPLES, *s)).astype(t) if t is np.float32 else
                self.rng.integers(np.iinfo(t).min, np.iinfo(t).max, (SAMPLES, *s), t, True)
                for n, s, t in self.inputs}


def zero_of(dtype, value=0):
    """A zero point somewhere in the middle."""
    return value + (128 if dtype is U8 else 3)


def conv(dtype, w_dtype=S8, per_channel=True, group=1, bias=True, relu=None, y_scale=0.35):
    net = Net()
    x = net.input([1, 4, 7, 6], 0.021, zero_of(dtype), dtype)
    w = net.weights([6, 4 // group, 3, 3] if group == 1 else [8, 4 // group, 3, 3], 0, per_channel,
                    w_dtype)
    operands = [x, w] + ([net.bias(6 if group == 1 else 8, 0.021)] if bias else [])
    y = net.node("Conv", operands, pads=[1, 0, 1, 2], strides=[2, 1], group=group)
    zero = zero_of(dtype)
    if relu == "min":
        y, zero = net.node("Relu", [y]), np.iinfo(dtype).min
    elif relu == "middle":
        y = net.node("Relu", [y])
    elif relu == "clip":
        bounds = [net.constant("lo", np.float32(-2)), net.constant("hi", np.float32(6))]
        y = net.node("Clip", [y, *bounds])
        y_scale = 0.05
    net.output(y, y_scale, zero, dtype)
    return net


def gemm(dtype, bias=True, w_dtype=S8, per_channel=False, y_scale=0.9, **attributes):
    net = Net()
    x = net.input([3, 20], 0.03, zero_of(dtype), dtype)
    w = net.weights([11, 20], 0, per_channel, w_dtype)
    operands = [x, w] + ([net.bias(11, 0.03)] if bias else [])
    net.output(net.node("Gemm", operands, transB=1, **attributes), y_scale, zero_of(dtype), dtype)
    return net


def matmul(dtype, per_channel=True):
    net = Net()
    x = net.input([2, 5, 16], 0.03, zero_of(dtype), dtype)
    w = net.weights([16, 9], 1, per_channel)
    net.output(net.node("MatMul", [x, w]), 0.7, zero_of(dtype, 5), dtype)
    return net


def binary(op, dtype):
    net = Net()
    a = net.input([2, 3, 4], 0.031, zero_of(dtype), dtype)
    b = net.input([3, 4], 0.017, zero_of(dtype, 20), dtype)
    net.output(net.node(op, [a, b]), 0.04, zero_of(dtype, -4), dtype)
    return net


def unary(op, dtype, shape=(1, 4, 6, 6), scale=0.05, y=(0.04, None), **attributes):
    net = Net()
    x = net.input(list(shape), scale, zero_of(dtype), dtype)
    y_scale, zero = y
    net.output(net.node(op, [x], **attributes), y_scale,
               zero_of(dtype, -7) if zero is None else zero, dtype)
    return net


def mover(op, dtype, *operands, requantize=False, **attributes):
    net = Net()
    x = net.float_input([1, 4, 6, 6], 0.05, zero_of(dtype), dtype)
    y = net.node(op, [x, *(net.constant("operand", np.array(o, np.int64)) for o in operands)],
                 **attributes)
    if requantize:
        net.output(y, 0.07, zero_of(dtype, 9), dtype)
    else:
        net.output(y, 0.05, zero_of(dtype), dtype)
    return net


def concat(dtype, equal):
    net = Net()
    a = net.float_input([1, 4, 6], 0.05, zero_of(dtype), dtype)
    b = net.float_input([1, 2, 6], 0.05 if equal else 0.03, zero_of(dtype), dtype)
    net.output(net.node("Concat", [a, b], axis=1), 0.05, zero_of(dtype), dtype)
    return net


# name -> (model, operators of the QOperator form, steps allowed)
CASES = {
    "conv_u8s8": (conv(U8), ["QLinearConv"], 0),
    "conv_u8u8": (conv(U8, U8, per_channel=False), ["QLinearConv"], 0),
    "conv_s8s8": (conv(S8), ["QLinearConv"], 0),
    "conv_group": (conv(U8, group=2), ["QLinearConv"], 0),
    "conv_no_bias": (conv(U8, bias=False), ["QLinearConv"], 0),
    "conv_s8u8": (conv(S8, U8, per_channel=False),
                  ["DequantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv",
                   "QuantizeLinear"], 1),
    "conv_relu": (conv(U8, relu="min"), ["QLinearConv"], 0),
    "conv_relu_s8": (conv(S8, relu="min"), ["QLinearConv"], 0),
    "conv_relu_middle": (conv(U8, relu="middle"), ["QLinearConv", "Clip"], 0),
    "conv_clip": (conv(U8, relu="clip"), ["QLinearConv", "Clip"], 0),
    "gemm": (gemm(U8), ["QGemm"], 0),
    "gemm_s8": (gemm(S8), ["QGemm"], 0),
    "gemm_u8u8": (gemm(U8, w_dtype=U8), ["QGemm"], 0),
    "gemm_per_channel": (gemm(U8, per_channel=True), ["QGemm"], 0),
    "gemm_no_bias": (gemm(U8, bias=False, alpha=0.3), ["QGemm"], 0),
    "gemm_alpha": (gemm(U8, alpha=0.5, beta=0.5), ["QGemm"], 0),
    "matmul": (matmul(U8), ["QLinearMatMul"], 0),
    "matmul_s8": (matmul(S8, False), ["QLinearMatMul"], 0),
    "mul": (binary("Mul", U8), ["QLinearMul"], 0),
    "mul_s8": (binary("Mul", S8), ["QLinearMul"], 0),
    "add": (binary("Add", U8), ["QLinearAdd"], 1),
    "add_s8": (binary("Add", S8), ["QLinearAdd"], 1),
    "global_average": (unary("GlobalAveragePool", U8), ["QLinearGlobalAveragePool"], 0),
    "global_average_s8": (unary("GlobalAveragePool", S8), ["QLinearGlobalAveragePool"], 0),
    "average": (unary("AveragePool", U8, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
                ["QLinearAveragePool"], 1),
    "softmax": (unary("Softmax", U8, shape=(3, 10), y=(1 / 256, 0)), ["QLinearSoftmax"], 1),
    "max_pool": (mover("MaxPool", U8, kernel_shape=[2, 2]), ["QuantizeLinear", "MaxPool"], 0),
    "max_pool_s8": (mover("MaxPool", S8, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), ["QuantizeLinear", "MaxPool"], 0),
    "max_pool_requantized": (mover("MaxPool", U8, kernel_shape=[2, 2], requantize=True),
                             ["QuantizeLinear", "MaxPool", "DequantizeLinear", "QuantizeLinear"], 0),
    "transpose": (mover("Transpose", U8, perm=[0, 2, 3, 1]), ["QuantizeLinear", "Transpose"], 0),
    "reshape": (mover("Reshape", S8, [1, 24, 6]), ["QuantizeLinear", "Reshape"], 0),
    "flatten": (mover("Flatten", U8, axis=1), ["QuantizeLinear", "Flatten"], 0),
    "concat_equal": (concat(U8, True), ["QuantizeLinear", "QuantizeLinear", "Concat"], 0),
    "concat": (concat(U8, False), ["QuantizeLinear", "QuantizeLinear", "QLinearConcat"], 0),
}
# Not one operator once fused: what stays float and why is in the reference of the target.
NOT_FUSED = {"conv_s8u8", "conv_relu_middle", "conv_clip", "max_pool_requantized", "gemm_alpha",
             "flatten"}


# int8 it rewrites to uint8, and leaves the graph's ends float.
FUSED = [name for name, case in CASES.items()
         if name not in NOT_FUSED and case[0].outputs[0][1] is U8]


def run(path, data, optimize=False, save=None):
    model = onnx.load(path)
    runner = session(model, optimize, save)
    rows = [runner.run(None, {n: a[k] for n, a in data.items()}) for k in range(SAMPLES)]
    return np.stack([row[0] for row in rows])


def steps(a, b):
    return int(np.max(np.abs(a.astype(np.int64) - b.astype(np.int64).reshape(a.shape))))


class Forms(OracleCase):
    def files(self, name):
        net = CASES[name][0]
        paths = [self.scratch / f"{name}{end}.onnx" for end in ("", "_qop", "_qdq", "_again")]
        onnx.save(net.model(), paths[0])
        qxc(paths[0], "-emit=qop", "-no-sync", "-o", paths[1])
        qxc(paths[1], "-emit=qdq", "-no-sync", "-o", paths[2])
        qxc(paths[0], "-emit=qdq", "-no-sync", "-o", paths[3])
        for path in paths:
            onnx.checker.check_model(str(path), full_check="com.microsoft" not in
                                     {o.domain for o in onnx.load(path).opset_import})
        return paths, net.data()

    @for_each(*CASES)
    def test_forms(self, name):
        _, operators, allowed = CASES[name]
        (source, qop, qdq, again), data = self.files(name)
        self.assertEqual(sorted(operators), sorted(n.op_type for n in onnx.load(qop).graph.node))

        unfused = run(source, data)
        integer = run(qop, data)
        samples = {n: a.reshape(a.shape[0], *a.shape[2:]) if a.shape[1] == 1 else a
                   for n, a in data.items()}  # the sample axis replaces a leading 1
        mine = next(iter(qxc_outputs(source, samples, self.scratch).values()))
        self.assertLessEqual(steps(integer, mine), allowed, "onnxruntime on QOperators, qxc run")
        self.assertLessEqual(steps(unfused, integer), 1, "QDQ as it came, QOperators")
        self.assertGreater(len(np.unique(integer)), 8, "a test that saturates shows nothing")
        for path in (qdq, again):
            np.testing.assert_array_equal(unfused, run(path, data), str(path))

    @for_each(*FUSED)
    def test_fusion(self, name):
        """What onnxruntime makes of our QDQ form has no DequantizeLinear left."""
        (_, _, qdq, _), data = self.files(name)
        saved = self.scratch / "optimized.onnx"
        run(qdq, data, optimize=True, save=saved)
        left = {n.op_type for n in onnx.load(saved).graph.node}
        self.assertFalse(left & {"DequantizeLinear", "Conv", "Gemm", "MatMul"}, left)


if __name__ == "__main__":
    unittest.main()
