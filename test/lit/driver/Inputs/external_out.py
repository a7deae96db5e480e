"""Prints where the initializers of MODEL lie, and whether they have the values of those of SAME."""

import sys

import numpy as np
import onnx

model, same = sys.argv[1:]
onnx.checker.check_model(model)
inside = []
for t in onnx.load(model, load_external_data=False).graph.initializer:
    if t.data_location == onnx.TensorProto.EXTERNAL:
        print(t.name, *(e.value for e in t.external_data))
    else:
        inside.append(len(t.raw_data))
one, other = ({t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer} for path in (model, same))
equal = one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
print(f"{len(inside)} inside, the largest of {max(inside, default=0)} bytes;", "the same values" if equal else "other values")
