"""Small float models of the kinds that dynamic and weight-only quantization are for."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import run_samples, session


class Graph:
    """Collects nodes and initializers; every call returns the name of the result."""

    def __init__(self, seed, opset=17):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.opset = [], [], opset

    def const(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, name, *shape):
        return self.const(name, (self.rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32))

    def bias(self, name, n):
        return self.const(name, (self.rng.standard_normal(n) / 4).astype(np.float32))

    def op(self, op, *inputs, name=None, **attrs):
        name = name or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"/{name}", **attrs))
        return name

    def linear(self, x, name, k, n):
        product = self.op("MatMul", x, self.weight(f"{name}.weight", k, n), name=f"{name}.matmul")
        return self.op("Add", product, self.bias(f"{name}.bias", n), name=name)

    def model(self, x, shape, y, out_shape):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, out_shape)],
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        return model


def mlp(batch=1):
    """Linear layers with the bias behind (MatMul, Add) and within (Gemm)."""
    g = Graph(1)
    h = g.op("Relu", g.linear("x", "fc1", 64, 96))
    h = g.op("Relu", g.linear(h, "fc2", 96, 64))
    y = g.op("Gemm", h, g.weight("fc3.weight", 10, 64), g.bias("fc3.bias", 10), name="y", transB=1)
    return g.model("x", [batch, 64], y, [batch, 10])


def transformer(tokens=12, width=64, heads=4):
    """One block: attention with its residual, then two linear layers with theirs."""
    g = Graph(2)
    split = g.const("split", np.array([0, tokens, heads, width // heads], np.int64))
    join = g.const("join", np.array([0, tokens, width], np.int64))
    def head(name, perm):
        h = g.op("Reshape", g.linear("x", name, width, width), split, allowzero=0)
        return g.op("Transpose", h, perm=perm)
    scores = g.op("MatMul", head("q", [0, 2, 1, 3]), head("k", [0, 2, 3, 1]))
    scores = g.op("Mul", scores, g.const("scale", np.float32(1 / np.sqrt(width // heads))))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), head("v", [0, 2, 1, 3]))
    mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), join)
    h = g.op("Add", g.linear(mixed, "out", width, width), "x")
    wide = g.op("Tanh", g.linear(h, "up", width, 2 * width))
    y = g.op("Add", g.linear(wide, "down", 2 * width, width), h, name="y")
    return g.model("x", [1, tokens, width], y, [1, tokens, width])


def convnet():
    """Convolutions with bias, strides, groups and pads."""
    g = Graph(3)
    h = g.op("Conv", "x", g.weight("c1.weight", 8, 3, 3, 3), g.bias("c1.bias", 8), pads=[1, 1, 1, 1],
             strides=[2, 2])
    h = g.op("Relu", h)
    h = g.op("Conv", h, g.weight("c2.weight", 8, 1, 3, 3), g.bias("c2.bias", 8), pads=[1, 0, 1, 2], group=8)
    y = g.op("Conv", h, g.weight("c3.weight", 12, 8, 1, 1), name="y")
    return g.model("x", [1, 3, 16, 16], y, [1, 12, 8, 8])


MODELS = {"mlp": mlp, "transformer": transformer, "convnet": convnet}


def samples(model, count=8, seed=0):
    """`count` inputs, keyed by name, with a leading sample axis."""
    rng = np.random.default_rng(seed)
    value = model.graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    return {value.name: (rng.standard_normal([count, *shape[1:]]) * 1.5 + 0.2).astype(np.float32)}


def answered(name, folder):
    """A model of MODELS as a file, inputs, and what onnxruntime makes of them."""
    model = MODELS[name]()
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    arrays = samples(model)
    return path, arrays, run_samples(session(path), model, arrays)["y"]
