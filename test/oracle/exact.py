"""A float model in double precision, to judge two float results that differ.

Deep networks amplify rounding: onnxruntime itself ends several 1e-5 away from the exact result.
"""

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator


def windows(x, at, kernel, fill):
    """[n, c, oh, ow, kh, kw]; beyond the input there is `fill`."""
    assert not at.get("ceil_mode") and at.get("dilations", [1, 1]) == [1, 1]
    assert at.get("auto_pad", b"NOTSET") == b"NOTSET"
    top, left, bottom, right = at.get("pads", [0] * 4)
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    down, across = at.get("strides", [1, 1])
    return sliding_window_view(x, kernel, axis=(2, 3))[:, :, ::down, ::across]


def conv(at, x, w, b=None):
    group = at.get("group", 1)
    seen = windows(x, at, w.shape[2:], 0)
    parts = [np.tensordot(part, kernel, ((1, 4, 5), (1, 2, 3))) for part, kernel in
             zip(np.split(seen, group, 1), np.split(w, group, 0))]
    y = np.moveaxis(np.concatenate(parts, 3), 3, 1)
    return y if b is None else y + b[:, None, None]


def max_pool(at, x):
    return windows(x, at, at["kernel_shape"], -np.inf).max((4, 5))


def average_pool(at, x):
    total = windows(x, at, at["kernel_shape"], 0).sum((4, 5))
    inside = np.full_like(x, 1)
    return total / windows(inside, at, at["kernel_shape"], at.get("count_include_pad", 0)).sum((4, 5))


def lrn(at, x):
    size = at["size"]
    squares = np.pad(x**2, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    total = sum(squares[:, k:k + x.shape[1]] for k in range(size))
    return x / (at.get("bias", 1.0) + at.get("alpha", 1e-4) / size * total) ** at.get("beta", 0.75)


def gemm(at, a, b, c=0):
    a, b = a.T if at.get("transA") else a, b.T if at.get("transB") else b
    return at.get("alpha", 1.0) * (a @ b) + at.get("beta", 1.0) * c


def batch_normalization(at, x, scale, bias, mean, var):
    scale, bias, mean, var = (v[:, None, None] for v in (scale, bias, mean, var))
    return (x - mean) / np.sqrt(var + at.get("epsilon", 1e-5)) * scale + bias


OURS = {"Conv": conv, "MaxPool": max_pool, "AveragePool": average_pool, "LRN": lrn, "Gemm": gemm,
        "BatchNormalization": batch_normalization, "Dropout": lambda at, x: x,
        "Unsqueeze": lambda at, x: np.expand_dims(x, tuple(at["axes"])),
        "Relu": lambda at, x: np.maximum(x, 0), "Sum": lambda at, *x: sum(x)}


def double(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def exact_values(model, feeds):
    """{value: in double precision} for one sample."""
    values = {t.name: double(numpy_helper.to_array(t)) for t in model.graph.initializer}
    values |= {name: double(array) for name, array in feeds.items()}
    opset = {o.domain: o.version for o in model.opset_import}
    for node in model.graph.node:
        at = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        operands = [values[name] for name in node.input]
        if node.op_type in OURS:
            values[node.output[0]] = OURS[node.op_type](at, *operands)
        else:
            runner = ReferenceEvaluator(node, opsets=opset)
            result = runner.run(None, dict(zip(node.input, operands)))
            values |= dict(zip(node.output, result))
    return values
