"""Writes FOLDER/m.onnx: MatMuls with COUNT weights of 256 MiB that are zeros in a file with no blocks on the disk."""

import os
import sys

from onnx import TensorProto, helper, save

WIDTH = 8192
BYTES = 4 * WIDTH * WIDTH
folder, count = sys.argv[1], int(sys.argv[2])
weights = []
for i in range(count):
    w = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", i * BYTES), ("length", BYTES)):
        w.external_data.add(key=key, value=str(value))
    weights.append(w)
nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(count)]
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH]) for name in ("x0", f"x{count}")]
model = helper.make_model(helper.make_graph(nodes, "large", ends[:1], ends[1:], weights),
                          opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
save(model, f"{folder}/m.onnx")
with open(f"{folder}/w.bin", "wb") as f:
    os.truncate(f.fileno(), count * BYTES)
