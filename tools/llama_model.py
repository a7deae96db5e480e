#!/usr/bin/env python3
"""Writes a float model with the shapes of a Llama, its weights as external data: for trying how qxc handles models that
are larger than memory.

    tools/llama_model.py big.onnx                              # 8.3 GB, of which the disk holds 0.3
    tools/llama_model.py small.onnx --layers 4 --width 512 --inner 1408 --vocabulary 4096 --dense all

The file of weights is sparse: blocks that are not `--dense` are holes, which read as zeros and take no room on the
disk. The embedding and the matrix of the output count as blocks, `first` and `last`. Each weight has a seed of its own,
so that a block has the same numbers whatever else is dense. Positions are left out, as they have no weights.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

ALIGN = 4096


class Weights:
    """Initializers in a file beside the model, written as they are named."""

    def __init__(self, path, dense):
        self.location, self.dense, self.tensors = path.name, dense, []
        self.file = open(path, "wb")
        self.offset = 0

    def add(self, name, shape, block):
        size = 4 * int(np.prod(shape))
        if "all" in self.dense or block in self.dense:
            self.write(name, shape)
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self.location), ("offset", self.offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self.tensors.append(tensor)
        self.offset += size + -size % ALIGN
        return name

    def write(self, name, shape):
        """Normal numbers, some rows at a time."""
        rng = np.random.default_rng(list(name.encode()))
        rows = max(1, (1 << 22) // shape[-1])
        self.file.seek(self.offset)
        for at in range(0, shape[0], rows):
            part = rng.standard_normal((min(rows, shape[0] - at), *shape[1:]), dtype=np.float32)
            (part / np.float32(shape[0] ** 0.5)).tofile(self.file)

    def close(self):
        self.file.truncate(self.offset)
        self.file.close()


class Graph:
    def __init__(self, weights):
        self.nodes, self.small, self.weights = [], [], weights

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{name}/{op}", **attributes))
        return name

    def constant(self, name, value):
        if all(name != t.name for t in self.small):
            self.small.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, x, inputs, outputs, name, block):
        return self.node("MatMul", [x, self.weights.add(f"{name}.weight", (inputs, outputs), block)], name)

    def norm(self, x, width, name):
        two, few = self.constant("two", np.float32(2)), self.constant("epsilon", np.float32(1e-5))
        square = self.node("Pow", [x, two], f"{name}.square")
        mean = self.node("ReduceMean", [square, self.constant("last", np.int64([-1]))], f"{name}.mean")
        root = self.node("Sqrt", [self.node("Add", [mean, few], f"{name}.sum")], f"{name}.root")
        scaled = self.node("Div", [x, root], f"{name}.scaled")
        return self.node("Mul", [scaled, self.constant(f"{name}.weight", np.ones(width, np.float32))], name)

    def heads(self, x, n, name, order):
        shape = self.constant(f"into_{n}", np.int64([0, 0, n, -1]))
        return self.node("Transpose", [self.node("Reshape", [x, shape], f"{name}.heads")], f"{name}.turned", perm=order)

    def attention(self, x, width, heads, name, block):
        query, key, value = (self.linear(x, width, width, f"{name}.{w}_proj", block) for w in "qkv")
        query = self.heads(query, heads, f"{name}.q", [0, 2, 1, 3])
        key = self.heads(key, heads, f"{name}.k", [0, 2, 3, 1])
        value = self.heads(value, heads, f"{name}.v", [0, 2, 1, 3])
        score = self.node("MatMul", [query, key], f"{name}.score")
        root = self.constant("root", np.float32((width // heads) ** 0.5))
        share = self.node("Softmax", [self.node("Div", [score, root], f"{name}.divided")], f"{name}.share", axis=-1)
        mixed = self.node("Transpose", [self.node("MatMul", [share, value], f"{name}.mixed")], f"{name}.back",
                          perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [mixed, self.constant("joined", np.int64([0, 0, -1]))], f"{name}.joined")
        return self.linear(joined, width, width, f"{name}.o_proj", block)

    def gated(self, x, width, inner, name, block):
        gate, up = (self.linear(x, width, inner, f"{name}.{w}_proj", block) for w in ("gate", "up"))
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
        return self.linear(self.node("Mul", [silu, up], f"{name}.gated"), inner, width, f"{name}.down_proj", block)


def llama(path, layers=24, width=2560, inner=6912, vocabulary=32000, heads=32, dense=("0",)):
    """Writes the model and `path`.data beside it."""
    path = Path(path)
    weights = Weights(path.with_name(f"{path.name}.data"), dense)
    g = Graph(weights)
    x = g.node("Gather", [weights.add("embed_tokens.weight", (vocabulary, width), "first"), "tokens"], "embed_tokens")
    for i in range(layers):
        name, block = f"layers.{i}", str(i)
        seen = g.attention(g.norm(x, width, f"{name}.input_layernorm"), width, heads, f"{name}.self_attn", block)
        x = g.node("Add", [x, seen], f"{name}.attended")
        made = g.gated(g.norm(x, width, f"{name}.post_layernorm"), width, inner, f"{name}.mlp", block)
        x = g.node("Add", [x, made], f"{name}.out")
    x = g.linear(g.norm(x, width, "norm"), width, vocabulary, "lm_head", "last")
    weights.close()
    ends = [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "time"]),
            helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "time", vocabulary])]
    graph = helper.make_graph(g.nodes, "llama", ends[:1], ends[1:], weights.tensors + g.small)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    for name, value in (("layers", 24), ("width", 2560), ("inner", 6912), ("vocabulary", 32000), ("heads", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dense", nargs="+", default=["0"], metavar="BLOCK",
                        help="blocks that get random numbers: first, 0, 1, ..., last, or all (0)")
    llama(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
