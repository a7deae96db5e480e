"""onnxruntime on x86 processors without VNNI sums products of uint8 and int8 in 16 bits, two at a time, and saturates them.
That is a fault of its kernels there; those of uint8 and uint8 are right. Tests that compare with it give it the same
products of uint8: int8 operands, their zero points and what comes out are 128 higher, which changes no number."""

import functools
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

# Of each operator: (weight, its zero point)..., the data and its zero point, and the zero point of the result (None: that
# is no integer of 8 bits). Numbers are operands.
PRODUCTS = {
    "QLinearConv": ([(3, 5)], (0, 2), 7), "QLinearMatMul": ([(3, 5)], (0, 2), 7), "QGemm": ([(3, 5)], (0, 2), 8),
    "ConvInteger": ([(1, 3)], (0, 2), None), "MatMulInteger": ([(1, 3)], (0, 2), None),
    "MatMulIntegerToFloat": ([(1, 5)], (0, 4), None), "QAttention": ([(1, 7)], (0, 6), None),
    "DynamicQuantizeMatMul": ([(1, 3)], None, None), "DynamicQuantizeLSTM": ([(1, 9), (2, 11)], None, None)}


def quiet():
    """Options of a session that uses one thread and does not talk."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options


@functools.cache
def saturates():
    """Whether this processor does it: 64 products of 255 and 127."""
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])],
                              [numpy_helper.from_array(np.full((64, 1), 127, np.int8), "w")])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    runner = ort.InferenceSession(model.SerializeToString(), quiet(), ["CPUExecutionProvider"])
    return runner.run(None, {"x": np.full((1, 64), 255, np.uint8)})[0][0, 0] != 64 * 255 * 127


class Unsigned:
    """Rewrites the products of one graph, and of the graphs in it, to uint8."""

    def __init__(self, graph, types, arrays):
        self.graph = graph
        self.types = dict(types)  # of values: initializers and what onnx can infer
        self.arrays = dict(arrays)
        self.nodes = []
        for value in (*graph.input, *graph.value_info, *graph.output):
            self.types[value.name] = value.type.tensor_type.elem_type
        for tensor in graph.initializer:
            self.types[tensor.name] = tensor.data_type
            self.arrays[tensor.name] = tensor

    def rewrite(self):
        """Whether anything changed."""
        changed = False
        for node in self.graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    changed |= Unsigned(attribute.g, self.types, self.arrays).rewrite()
            signed = self.signed_operands(node)
            if signed:
                self.change(node, signed, PRODUCTS[node.op_type][2])
            else:
                self.nodes.append(node)
            changed |= bool(signed)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        return changed

    def signed_operands(self, node):
        """Of a product those of int8, with their zero points."""
        weights, data, _ = PRODUCTS.get(node.op_type, ([], None, None))
        return [o for o in [*weights, *([data] if data else [])] if self.type_of(node, *o) == TensorProto.INT8]

    def type_of(self, node, operand, zero):
        """An operand's type, which its zero point has too."""
        for i in (zero, operand):
            if i < len(node.input) and self.types.get(node.input[i]):
                return self.types[node.input[i]]
        return TensorProto.UNDEFINED

    def change(self, node, signed, result):
        signed_result = result is not None and len(node.input) > result and self.type_of(node, result, result) == TensorProto.INT8
        for operand, zero in signed:
            self.raise_operand(node, operand, zero)
        if signed_result:
            node.input[result] = self.higher(node.input[result])
            name, node.output[0] = node.output[0], f"{node.output[0]}.unsigned"
        self.nodes.append(node)
        if signed_result:
            self.shift(node.output[0], name, -128, TensorProto.INT8)

    def raise_operand(self, node, operand, zero):
        node.input.extend([""] * (zero + 1 - len(node.input)))
        if not node.input[zero]:
            self.constant("zero.int8", np.int8(0))
            node.input[zero] = "zero.int8"
        node.input[operand], node.input[zero] = self.higher(node.input[operand]), self.higher(node.input[zero])

    def constant(self, name, array):
        if all(t.name != name for t in self.graph.initializer):
            self.graph.initializer.append(numpy_helper.from_array(np.array(array), name))
            self.arrays[name] = self.graph.initializer[-1]

    def higher(self, name):
        """The value 128 higher, as uint8."""
        made = f"{name}.unsigned"
        if name in self.arrays:
            self.constant(made, (numpy_helper.to_array(self.arrays[name]).astype(np.int16) + 128).astype(np.uint8))
        elif all(made not in n.output for n in self.nodes):
            self.shift(name, made, 128, TensorProto.UINT8)
        return made

    def shift(self, name, made, by, to):
        self.constant(f"shift.{by}", np.int32(by))
        self.nodes += [helper.make_node("Cast", [name], [f"{made}.wide"], to=TensorProto.INT32),
                       helper.make_node("Add", [f"{made}.wide", f"shift.{by}"], [f"{made}.sum"]),
                       helper.make_node("Cast", [f"{made}.sum"], [made], to=to)]


def session(model, options):
    """onnxruntime's session of a model, a path or its bytes, that computes right on this processor: what it would run is
    rewritten, then run as it is."""
    if not saturates():
        return ort.InferenceSession(model, options, ["CPUExecutionProvider"])
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = options.optimized_model_filepath or str(pathlib.Path(folder) / "model.onnx")
        as_it_is = ort.InferenceSession(model, options, ["CPUExecutionProvider"])
        loaded = onnx.load(options.optimized_model_filepath, load_external_data=False)
    if isinstance(model, str):
        load_external_data_for_model(loaded, str(pathlib.Path(model).parent))
    typed = onnx.shape_inference.infer_shapes(loaded)
    types = {v.name: v.type.tensor_type.elem_type for v in typed.graph.value_info}
    if not Unsigned(loaded.graph, types, {}).rewrite():
        return as_it_is
    loaded.ir_version = max(loaded.ir_version, 4)  # before that each initializer is an input, too
    plain = quiet()
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(loaded.SerializeToString(), plain, ["CPUExecutionProvider"])
