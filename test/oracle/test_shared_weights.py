"""Weights that several nodes read are stored once, and compute what copies of them do."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, for_each, qxc, session

WIDTH, LAYERS = 32, 4
KINDS = ("gemm", "turned", "matmul", "conv")
WAYS = {"static": (), "dynamic": ("-dynamic",), "weights": ("-weight-only",),
        "blocks": ("-weight-only", "-weights=int4 block(16)"), "onnx": ("-target=onnx",)}
FEW = ("-weights=int4",)


def model(kind, copies=False):
    """A chain of layers that read one weight and one bias; with `copies` one of their own each, of the same numbers."""
    rng = np.random.default_rng(5)
    pixels = [1, 1] if kind in ("conv", "scaled") else []
    w = (rng.normal(size=[WIDTH, WIDTH, *pixels]) / WIDTH ** 0.5).astype(np.float32)
    b = rng.normal(size=WIDTH).astype(np.float32) / 8
    constants, nodes, x = {}, [], "x"
    for i in range(LAYERS):
        own = str(i) if copies else ""
        constants |= {f"w{own}": w, f"b{own}": b}
        op = {"gemm": "Gemm", "turned": "Gemm", "matmul": "MatMul", "conv": "Conv", "scaled": "Conv"}[kind]
        operands = [x, f"w{own}"] + [f"b{own}"] * (kind != "matmul")
        nodes += [helper.make_node(op, operands, [f"s{i}"], f"n{i}", **({"transB": 1} if kind == "turned" else {})),
                  helper.make_node("Tanh", [f"m{i}" if kind == "scaled" else f"s{i}"], [f"t{i}"], f"h{i}")]
        if kind == "scaled":
            constants["k"] = np.float32(0.75)
            nodes.insert(-1, helper.make_node("Mul", [f"s{i}", "k"], [f"m{i}"]))
        x = f"t{i}"
    shape = [2, WIDTH, *(3 * p for p in pixels)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), shape


class SharedWeights(OracleCase):
    def made(self, kind, copies, way, emit, *options):
        path, data, out = self.scratch / "m.onnx", self.scratch / "x.npz", self.scratch / f"{way}.{copies}.{emit}.onnx"
        m, shape = model(kind, copies)
        onnx.save(m, path)
        np.savez(data, x=np.random.default_rng(3).normal(size=[4, *shape]).astype(np.float32))
        static = (f"-calib={data}",) if way in ("static", "onnx", "few") else ()
        qxc(path, *(FEW if way == "few" else WAYS[way]), *static, *options, f"-emit={emit}", "-no-sync", "-o", out)
        return out

    def outputs(self, path, optimize):
        x = np.random.default_rng(4).normal(size=model_shape(path)).astype(np.float32)
        return session(path, optimize).run(None, {"x": x})[0]

    @for_each(*(f"{k} {w} {e} {o}" for k in KINDS for w in WAYS for e in ("qdq", "qop") for o in ("all", "kept")))
    def test_one_constant_computes_what_copies_do(self, case):
        """Bit for bit, with and without graph optimizations. Only onnxruntime's MatMulNBits, which it makes of weights in
        blocks that one product reads, rounds as the unoptimized model does not."""
        kind, way, emit, of = case.split()
        options = () if of == "all" else ("-keep=n1",)
        shared, copies = (self.made(kind, c, way, emit, *options) for c in (False, True))
        onnx.checker.check_model(onnx.load(shared))
        for optimize in (False, True)[:1 if way == "blocks" and emit == "qdq" else 2]:
            np.testing.assert_array_equal(self.outputs(copies, optimize), self.outputs(shared, optimize))
        of_shared, of_copies = weights(shared), weights(copies)
        self.assertEqual((1, int(of == "kept")), of_shared)
        self.assertEqual((LAYERS - (of == "kept"), int(of == "kept")), of_copies)

    @for_each("scaled", "scaled -keep=n1", "gemm -keep=n1", "matmul -keep=n1", "conv -keep=n1")
    def test_few_bits_are_rounded_for_each_reader(self, case):
        """Readers that decide on their own have their weights rounded for what they compute, as copies of them would be."""
        kind, *options = case.split()
        shared, copies = (self.made(kind, c, "few", "qdq", *options) for c in (False, True))
        np.testing.assert_array_equal(self.outputs(copies, False), self.outputs(shared, False))

    @for_each(*(f"{k} {w} {e}" for k in KINDS for w in ("dynamic", "blocks", "static") for e in ("qdq", "qop")))
    def test_read_again(self, case):
        """What holds a constant once, or twins of it, does so when it went through qxc again, in either form."""
        kind, way, emit = case.split()
        for copies, count in ((False, 1), (True, LAYERS)):
            path, again = self.made(kind, copies, way, emit), self.scratch / "again.onnx"
            for other in ("qdq", "qop"):
                qxc(path, f"-emit={other}", "-no-sync", "-o", again)
                self.assertEqual(count, weights(again)[0])


def model_shape(path):
    return [d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]


def weights(path):
    """How many constants hold integers of a whole weight, packed or not, and how many its floats."""
    whole = [t for t in onnx.load(path).graph.initializer if len(t.raw_data) >= WIDTH * WIDTH // 2]
    floats = sum(t.data_type == TensorProto.FLOAT and np.prod(t.dims) == WIDTH * WIDTH for t in whole)
    return sum(t.data_type != TensorProto.FLOAT for t in whole), floats


if __name__ == "__main__":
    unittest.main()
