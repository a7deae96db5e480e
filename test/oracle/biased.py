"""A product with a float bias between DequantizeLinear and QuantizeLinear."""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from test_quantized_ops import NUMPY, RANGES


def biased(layer, x, w, y=None, per_channel=False, bias=None, computed=False):
    """The model and its inputs. layer: operator, attributes, shape of x and w, axis of the output channels; x, w, y: element
    type, scale, zero point. Without y the result is float; a bias that is `computed` is an input."""
    op, attributes, x_shape, w_shape, axis = layer
    rng = np.random.default_rng(11)
    channels = w_shape[axis]
    scale = np.float32(w[1]) * (1 + np.arange(channels, dtype=np.float32) / 3) if per_channel else np.float32(w[1])
    weights = rng.integers(*RANGES[w[0]], w_shape, endpoint=True)
    bias = rng.normal(0, .1, channels).astype(np.float32) if bias is None else bias
    zeros = np.full(np.shape(scale), w[2])
    constants = [helper.make_tensor("w", w[0], w_shape, weights.ravel().tolist()), numpy_helper.from_array(scale, "ws"),
                 helper.make_tensor("wz", w[0], zeros.shape, zeros.ravel().tolist())]
    for name, (elem, s, z) in (("x", x), *([("y", y)] if y else ())):
        constants += [numpy_helper.from_array(np.float32(s), name + "s"), helper.make_tensor(name + "z", elem, [], [z])]
    inputs = [helper.make_tensor_value_info("x", x[0], x_shape)]
    if computed:
        inputs.append(helper.make_tensor_value_info("b", T.FLOAT, bias.shape))
    else:
        constants.append(numpy_helper.from_array(bias, "b"))
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
             helper.make_node(op, ["xf", "wf", "b"], ["yf" if y else "y"], name="layer", **attributes)]
    if y:
        nodes.append(helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]))
    result = helper.make_tensor_value_info("y", y[0] if y else T.FLOAT, None)
    ints = rng.integers(*RANGES[x[0]], x_shape, endpoint=True).astype(NUMPY[x[0]])
    made = helper.make_model(helper.make_graph(nodes, "g", inputs, [result], constants), ir_version=10,
                             opset_imports=[helper.make_opsetid("", 21)])
    return onnx.shape_inference.infer_shapes(made), {"x": ints, **({"b": bias} if computed else {})}
