"""What Aidge's exported networks compute, in exact integers: the numbers of Aidge's own CPU backend (test_aidge_itself.py)."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import numpy_helper

LIMITS = {T.UINT8: (0, 255), T.INT8: (-128, 127), T.UINT16: (0, 65535), T.INT16: (-32768, 32767), T.UINT4: (0, 15),
          T.INT4: (-8, 7), T.INT32: (-2**31, 2**31 - 1)}


def is_int(x):
    return x.dtype.kind in "iu"


def windows(x, kernel, attrs):
    """The elements of each place of the window, with the place."""
    strides, dilations = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    size = [(x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            a, b = i * dilations[0], j * dilations[1]
            yield i, j, x[:, :, a:a + size[0] * strides[0]:strides[0], b:b + size[1] * strides[1]:strides[1]]


def padded(x, pads):
    return np.pad(x, [(pads[i], pads[i + len(pads) // 2]) for i in range(len(pads) // 2)])


def conv(x, w, b, attrs):
    x = padded(x, [0, 0, *attrs.get("pads", [0] * 4)[:2], 0, 0, *attrs.get("pads", [0] * 4)[2:]])
    groups, y = attrs.get("group", 1), 0
    for i, j, place in windows(x, w.shape[2:], attrs):
        parts = np.split(place, groups, axis=1)
        y = y + np.concatenate([np.einsum("nchw,oc->nohw", p, k[:, :, i, j])
                                for p, k in zip(parts, np.split(w, groups), strict=True)], axis=1)
    return y if b is None else y + b.reshape(1, -1, 1, 1)


def shifted(x, k, half):
    return (x + (1 << k - 1 if half and k else 0)) >> k


def quantized(x, scale, elem):
    if is_int(x) and is_int(scale):
        return np.clip(shifted(x, int(scale).bit_length() - 1, True), *LIMITS[elem])
    y = np.rint(x.astype(np.float32) * (np.float32(1) / scale) if is_int(x) else x / scale)
    return y if elem == T.FLOAT else np.clip(y, *LIMITS[elem]).astype(np.int64)


def compute(model, x):
    """The first output for all samples of x."""
    graph = model.graph
    values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    elems = {t.name: t.data_type for t in graph.initializer}
    values = {name: v if elems[name] in (T.FLOAT, T.DOUBLE) else v.astype(np.int64) for name, v in values.items()}
    values[graph.input[0].name] = x
    waiting = list(graph.node)  # Aidge's may stand before what they read
    while waiting:
        n = next(n for n in waiting if all(name in values or not name for name in n.input))
        waiting.remove(n)
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        if n.op_type == "Constant":
            values[n.output[0]] = numpy_helper.to_array(attrs["value"])
            continue
        a, *rest = [values.get(name) for name in n.input]
        match n.op_type:
            case "QuantizeLinear": y = quantized(a, rest[0], elems[n.input[2]])
            case "DequantizeLinear": y = a.astype(np.float32) * rest[0]
            case "Conv":
                a = np.rint(a).astype(np.int64) if is_int(rest[0]) else a
                y = conv(a, rest[0], rest[1] if len(rest) > 1 else None, attrs)
            case "QLinearConv":
                xs, xz, w, ws, wz, ys, yz, *b = rest
                sums = conv(a - xz, w - wz, b[0] if b else None, attrs)
                y = np.clip(np.rint(sums * (xs * ws / ys)) + yz, *LIMITS[elems[n.input[7]]]).astype(np.int64)
            case "Gemm": y = a @ (rest[0].T if attrs.get("transB") else rest[0]) + (rest[1] if len(rest) > 1 else 0)
            case "Relu": y = np.maximum(a, 0)
            case "MaxPool": y = np.max([p for _, _, p in windows(a, attrs["kernel_shape"], attrs)], axis=0)
            case "Flatten": y = a.reshape(len(a), -1)
            case "BitShift": y = shifted(a, int(rest[0].ravel()[0]), False)
            case "Pad": y = np.pad(a, [(0, 0)] * (a.ndim - 2) + [(rest[0][i], rest[0][i + 2]) for i in range(2)])
            case "Add": y = a + rest[0]
            case "Sub": y = a - rest[0]
            case "Mul": y = a * rest[0]
            case "Round": y = np.rint(a)
            case "Clip": y = np.clip(a, *rest)
            case "Cast": y = a.astype(np.float32 if attrs["to"] == T.FLOAT else np.int64)
            case _: raise NotImplementedError(n.op_type)
        values[n.output[0]] = y
    return values[graph.output[0].name]
