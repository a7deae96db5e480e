"""A computed constant that an annotation names, and that only a computed node reads: annotated_const.py FILE."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Add", ["k", "k"], ["named"]), helper.make_node("Add", ["named", "k"], ["w"]),
         helper.make_node("Add", ["x", "w"], ["y"])]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (128, 128))],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, (128, 128))],
                          [numpy_helper.from_array(np.ones((128, 128), np.float32), "k")])
note = graph.quantization_annotation.add(tensor_name="x")
note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="named")
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
onnx.save(model, sys.argv[1])
