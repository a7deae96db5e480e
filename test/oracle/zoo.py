"""One graph with every operator that qxc quantizes, in the form that an opset has for it.

A Conv makes what they all read; each operator's result is an output of its own, and some stand in
rows, as neighbours decide what can stay integers. The nodes of movers are those of
tools/probe_ort_kernels.py.
"""

import importlib.util

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import ROOT

spec = importlib.util.spec_from_file_location("probe", ROOT / "tools/probe_ort_kernels.py")
probe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(probe)

SHAPE = (1, 4, 4, 4)
# Functions of one number, with what makes their operand legal.
UNARY = {"Abs": {}, "Ceil": {}, "Celu": {}, "Cos": {}, "Elu": {}, "Erf": {}, "Exp": {}, "Floor": {}, "Gelu": {},
         "HardSigmoid": {}, "HardSwish": {}, "LeakyRelu": {"alpha": 0.1}, "Mish": {}, "Neg": {}, "Round": {},
         "Selu": {}, "Sigmoid": {}, "Sign": {}, "Sin": {}, "Softplus": {}, "Softsign": {}, "Tanh": {},
         "ThresholdedRelu": {"alpha": 0.5}, "Softmax": {"axis": 1}, "AveragePool": {"kernel_shape": [2, 2]},
         "GlobalAveragePool": {}}
POSITIVE = ("Log", "Reciprocal", "Sqrt")
STEPS = ("Ceil", "Floor", "Round", "Sign", "ThresholdedRelu")  # a small error becomes a large one


def exists(op, opset):
    try:
        return not onnx.defs.get_schema(op, opset).deprecated
    except onnx.defs.SchemaError:
        return False


class Zoo:
    def __init__(self, opset):
        self.opset, self.rng = opset, np.random.default_rng(7)
        self.nodes, self.consts, self.outputs, self.count = [], [], [], 0

    def const(self, array):
        self.count += 1
        self.consts.append(numpy_helper.from_array(np.asarray(array), f"c{self.count}"))
        return f"c{self.count}"

    def weights(self, *shape):
        return self.const(self.rng.standard_normal(shape).astype(np.float32) / 2)

    def op(self, op, *inputs, n_out=1, **attrs):
        self.count += 1
        names = [f"{op}_{self.count}" + (f"_{i}" if i else "") for i in range(n_out)]
        self.nodes.append(helper.make_node(op, inputs, names, name=names[0], **attrs))
        return names[0] if n_out == 1 else names

    def conv(self, x, channels=4):
        return self.op("Conv", x, self.weights(4, channels, 3, 3), self.weights(4), pads=[1] * 4)

    def of_one_type(self, op, x):
        """An operator as the probe builds it, reading x where it would read ones."""
        node = probe.ONE_TYPE[op](op, self.opset, "float")
        at = 1 if op == "Where" else 0
        names = {name: f"{op}_{self.count}_{name}" for name in node.inputs}
        for tensor in node.consts:
            if tensor.name != node.inputs[at]:
                tensor.name = names[tensor.name]
                self.consts.append(tensor)
        inputs = [x if i == at else names[name] for i, name in enumerate(node.inputs)]
        if op == "Clip":
            low, high = numpy_helper.from_array(np.float32(-0.5), inputs[1]), numpy_helper.from_array(np.float32(0.75), inputs[2])
            self.consts = [c for c in self.consts if c.name not in inputs] + [low, high]
        return self.op(op, *inputs, n_out=len(node.outputs), **node.attrs)

    def out(self, names):
        self.outputs += [names] if isinstance(names, str) else names

    def each_operator(self, c):
        for op in probe.ONE_TYPE:
            if exists(op, self.opset) and op != "OneHot" and not (op == "Clip" and self.opset < 11):
                made = self.of_one_type(op, c)
                self.out(made[0] if op == "TopK" else made)  # not the indices
        for op, attrs in UNARY.items():
            if exists(op, self.opset):
                self.out(self.op(op, c, **attrs))
        positive = self.op("Add", self.op("Relu", self.conv(c)), self.const(np.float32([1.5])))
        for op in POSITIVE:
            self.out(self.op(op, positive))
        self.out(self.op("Pow", c, self.const(np.float32(2))))
        self.out(self.op("PRelu", c, self.const(np.full((4, 1, 1), 0.25, np.float32))))
        for op in ("ReduceMean", "ReduceSum"):
            attribute = self.opset < (13 if op == "ReduceSum" else 18)
            more = [] if attribute else [self.const(np.array([2, 3], np.int64))]
            self.out(self.op(op, c, *more, **({"axes": [2, 3]} if attribute else {})))

    def products(self, c):
        other = self.op("Conv", c, self.weights(4, 4, 1, 1))
        for op in ("Add", "Sub", "Mul", "Sum", "Max", "Min"):
            if self.opset >= 12 or op not in ("Max", "Min"):
                self.out(self.op(op, c, other))
        self.out(self.op("Concat", c, other, axis=1))
        self.out(self.op("MatMul", c, other))
        self.out(self.op("MatMul", c, self.weights(4, 4)))
        self.out(self.op("ConvTranspose", c, self.weights(4, 2, 2, 2), self.weights(2), strides=[2, 2]))
        flat = self.op("Flatten", other)
        self.out(self.op("Gemm", flat, self.weights(6, 64), self.weights(6), transB=1))
        self.out(self.op("Gemm", flat, self.weights(64, 5), *([] if self.opset >= 11 else [self.weights(5)]), alpha=0.5))

    def rows(self, c):
        """Neighbours: a Relu that is absorbed and one that is not, movers between products."""
        r = self.op("Relu", self.op("Add", c, self.conv(c)))
        p = self.op("MaxPool", r, kernel_shape=[2, 2], strides=[2, 2])
        if self.opset >= 11:
            p = self.op("Pad", p, self.const(np.array([0, 0, 1, 1] * 2, np.int64)), self.const(np.float32(0)))
        t = self.op("Transpose", self.conv(p), perm=[0, 2, 3, 1])
        m = self.op("Reshape", t, self.const(np.array([1, -1], np.int64)))
        self.out(self.op("Softmax", self.op("Mul", self.op("Gemm", m, self.weights(64 if self.opset >= 11 else 16, 10), self.weights(10)), self.const(np.float32([0.1]))), axis=1))
        self.out(self.op("Relu", c))  # c is read by others, too
        self.out(self.op("Relu", self.op("Transpose", c, perm=[0, 2, 1, 3])))


def zoo(opset):
    """[1, 4, 4, 4] -> many outputs, named after their operators."""
    z = Zoo(opset)
    c = z.conv("x")
    z.each_operator(c)
    z.products(c)
    z.rows(c)
    z.outputs = list(dict.fromkeys(z.outputs))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    ys = [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in z.outputs]
    graph = helper.make_graph(z.nodes, "zoo", [x], ys, z.consts)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              ir_version=min(ir_of(opset), 13))
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model, full_check=True)
    return model


def ir_of(opset):
    """The IR version of the onnx release that introduced an opset."""
    return next(row[1] for row in helper.VERSION_TABLE if row[2] >= opset)
