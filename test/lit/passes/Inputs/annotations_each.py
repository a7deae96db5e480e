"""A model whose inputs have one annotation each: annotations_each.py FILE."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PARAMS = {"s": np.float32(0.5), "z": np.uint8(3), "int": np.int32(1), "double": np.float64(0.5), "zero": np.float32(0),
          "below": np.float32([0.5, -0.25]), "nan": np.float32("nan"), "tiny": np.float32(1e-40), "two": np.float32([0.5, 0.25]),
          "four": np.float32([0.5, 0.25, 1, 2]), "three": np.float32([0.5, 0.25, 1]), "none": np.zeros(0, "f4"),
          "z_two": np.uint8([3, 4]), "z_float": np.float32(3), "z_wide": np.int64(3), "z_big": np.int32(7),
          "rows": np.float32([[0.5], [0.25]]), "blocks": np.float32([[0.5, 0.25], [1, 2]]), "odd": np.float32([[1, 2, 3]]),
          "half": np.float16(0.5)}
# name: (scale, zero point, shape)
VALUES = {"a": ("s", "z", (2, 4)), "b": ("four", "", (2, 4)), "c": ("two", "z_two", (2, 4)), "d": ("rows", "", (2, 4)),
          "e": ("blocks", "z", (2, 4)), "f": ("s", "", (2, 4)), "g": ("half", "z", (2, 4)), "h": ("s", "z_big", (2, 4)),
          "n1": ("int", "", (2, 4)), "n2": ("double", "", (2, 4)), "n3": ("zero", "z", (2, 4)), "n4": ("below", "", (2, 4)),
          "n5": ("nan", "", (2, 4)), "n6": ("tiny", "", (2, 4)), "n7": ("none", "", (2, 4)), "n8": ("s", "z_two", (2, 4)),
          "n9": ("four", "", (4, 4)), "o1": ("three", "", (2, 4)), "o2": ("odd", "", (2, 4)), "o3": ("s", "z_float", (2, 4)),
          "o4": ("s", "z_wide", (2, 4)), "o5": ("gone", "", (2, 4)), "o6": ("", "z", (2, 4))}

nodes = [helper.make_node("Relu", [v], ["y_" + v]) for v in VALUES]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(v, TensorProto.FLOAT, shape) for v, (_, _, shape) in VALUES.items()],
                          [helper.make_tensor_value_info("y_" + v, TensorProto.FLOAT, shape) for v, (_, _, shape) in VALUES.items()],
                          [numpy_helper.from_array(np.asarray(t), n) for n, t in PARAMS.items()])
for v, (scale, zero, _) in VALUES.items():
    note = graph.quantization_annotation.add(tensor_name=v)
    for key, name in (("SCALE_TENSOR", scale), ("ZERO_POINT_TENSOR", zero)):
        if name:
            note.quant_parameter_tensor_names.add(key=key, value=name)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
onnx.save(model, sys.argv[1])
