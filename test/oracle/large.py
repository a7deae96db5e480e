"""Float models of any size: of MatMul, Add and Relu with random weights, or of many small nodes."""

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH = 2048


def large(path, layers=31, width=WIDTH, external=False):
    """Writes the model, with its weights in a file beside it if asked (4 layers * width^2 bytes)."""
    rng = np.random.default_rng(layers)
    nodes, constants, x = [], [], "x"
    for i in range(layers):
        weight = rng.standard_normal((width, width), dtype=np.float32) / np.float32(width**0.5)
        bias = rng.standard_normal(width, dtype=np.float32)
        constants += [onnx.numpy_helper.from_array(weight, f"w{i}"), onnx.numpy_helper.from_array(bias, f"b{i}")]
        nodes += [helper.make_node("MatMul", [x, f"w{i}"], [f"product{i}"]),
                  helper.make_node("Add", [f"product{i}", f"b{i}"], [f"sum{i}"]),
                  helper.make_node("Relu", [f"sum{i}"], [f"y{i}"])]
        x = f"y{i}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name in ("x", x)]
    model = helper.make_model(helper.make_graph(nodes, "large", ends[:1], ends[1:], constants),
                              opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, path, save_as_external_data=external, location=f"{path.name}.data")
    return path


def many(path, layers):
    """Writes a model of three small nodes a layer."""
    nodes, constants, x = [], [], "x"
    for i in range(layers):
        constants.append(onnx.numpy_helper.from_array(np.float32([i + 1]), f"c{i}"))
        nodes += [helper.make_node("Mul", [x, f"c{i}"], [f"product{i}"], name=f"mul{i}"),
                  helper.make_node("Relu", [f"product{i}"], [f"y{i}"], name=f"relu{i}"),
                  helper.make_node("Add", [f"y{i}", x], [f"sum{i}"], name=f"add{i}")]
        x = f"sum{i}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8]) for name in ("x", x)]
    model = helper.make_model(helper.make_graph(nodes, "many", ends[:1], ends[1:], constants),
                              opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, path)
    return path
