"""onnxruntime on x86 processors without VNNI sums products of uint8 and int8 in 16 bits, two at a time, and saturates them.
That is a fault of its kernels there (they are right for uint8 weights): tests that compare with it give it the same weights
as uint8, with zero points 128 higher, which changes no number."""

import functools

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

# Operand of the weight and of its zero point.
WEIGHTS = {"QLinearConv": (3, 5), "QLinearMatMul": (3, 5), "QGemm": (3, 5), "ConvInteger": (1, 3), "MatMulInteger": (1, 3),
           "MatMulIntegerToFloat": (1, 5), "DynamicQuantizeMatMul": (1, 3)}


@functools.cache
def saturates():
    """Whether this processor does it: 64 products of 255 and 127."""
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
                              [numpy_helper.from_array(np.full((64, 1), 127, np.int8), "w")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    options = ort.SessionOptions()
    options.log_severity_level = 3
    runner = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return runner.run(None, {"x": np.full((1, 64), 255, np.uint8)})[0][0, 0] != 64 * 255 * 127


class Unsigned:
    """A copy of a model whose int8 weights of integer products are uint8."""

    def __init__(self, model):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.initial = {t.name: t for t in self.model.graph.initializer}
        self.signed = {v.name for v in self.model.graph.input if v.type.tensor_type.elem_type == TensorProto.INT8}
        self.made = {}
        for node in self.model.graph.node:
            if node.op_type in WEIGHTS:
                self.change(node, *WEIGHTS[node.op_type])
        self.model.graph.initializer.extend(self.made.values())

    def shifted(self, name):
        """The initializer 128 higher, as uint8."""
        if name not in self.made:
            array = numpy_helper.to_array(self.initial[name]).astype(np.int16) + 128
            self.made[name] = numpy_helper.from_array(array.astype(np.uint8), f"{name}.unsigned")
        return f"{name}.unsigned"

    def change(self, node, weight, zero):
        tensor = self.initial.get(node.input[weight])
        if tensor is None or tensor.data_type != TensorProto.INT8 or self.reads_int8(node):
            return
        has_zero = len(node.input) > zero and node.input[zero]
        if has_zero and node.input[zero] not in self.initial:
            return
        while len(node.input) <= zero:
            node.input.append("")
        if not has_zero:
            self.initial["zero.int8"] = numpy_helper.from_array(np.int8(0), "zero.int8")
        node.input[zero] = self.shifted(node.input[zero] if has_zero else "zero.int8")
        node.input[weight] = self.shifted(node.input[weight])

    def reads_int8(self, node):
        """Data of int8 has no kernel with uint8 weights."""
        if node.op_type.startswith("QLinear") or node.op_type == "QGemm":
            zero = self.initial.get(node.input[2])
            return zero is None or zero.data_type == TensorProto.INT8
        return node.input[0] in self.signed


def without_saturation(model):
    """The model, a path or a ModelProto, as onnxruntime computes it right on this processor."""
    if not saturates():
        return model
    loaded = model if isinstance(model, onnx.ModelProto) else onnx.load(str(model))
    return Unsigned(loaded).model
