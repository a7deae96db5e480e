"""Float models of any size, of MatMul, Add and Relu with random weights, written layer by layer."""

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
