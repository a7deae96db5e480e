"""Operators of com.microsoft that are made of others, and stay one where nothing within becomes integers: what onnxruntime
makes of the quantized model is what it makes of the operator in the float one."""

import collections
import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from common import OracleCase, qxc, session
from test_decoder_ops import normal, tables

SAMPLES, LEAST = 8, 20  # dB


def sqnr(want, got):
    return 20 * np.log10(np.linalg.norm(want) / np.linalg.norm(got - want))


class WholeCalls(OracleCase):
    """Products of 32 numbers before an operator of 4 heads of 16, and one behind it."""

    def products(self, rng, names, width):
        weights = {f"w{n}": (normal(rng, 32, width.get(n, 64)) / 6).astype(np.float32) for n in names}
        return weights, [helper.make_node("MatMul", ["x", f"w{n}"], [n], f"to {n}") for n in names]

    def model(self, op, inputs, constants, attrs, *, results=("a",), data=(), width=None, steps=3):
        """`inputs`: of the operator; q, k and v are products. `data`: further inputs of the model."""
        rng = np.random.default_rng(1)
        weights, nodes = self.products(rng, [n for n in inputs if n in ("q", "k", "v")], width or {})
        constants = {**weights, "wo": normal(rng, 64, 32) / 8, **constants}
        nodes.append(helper.make_node(op, inputs, results, "it", domain="com.microsoft", **attrs))
        nodes.append(helper.make_node("MatMul", ["a", "wo"], ["y"], "last"))
        kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
        graph = helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, steps, 32]),
             *(helper.make_tensor_value_info(n, kinds[v.dtype], v.shape) for n, v in data)],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", *results[1:])],
            [numpy_helper.from_array(v, n) for n, v in constants.items()])
        return helper.make_model(graph, ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])

    def cases(self):
        rng = np.random.default_rng(2)
        cos, sin = tables(16)
        half = {"k": 32, "v": 32}
        heads = {"num_heads": 4, "kv_num_heads": 2}
        lengths = {"n": np.array([2, 2], np.int32), "t": np.array([3], np.int32)}
        turned = {"cos": cos, "sin": sin}
        past = [(n, normal(rng, 2, 2, 4, 16)) for n in ("pk", "pv")]
        three = ("a", "present_k", "present_v")
        yield "MultiHeadAttention", (["q", "k", "v"], {}, {"num_heads": 4}), {}
        yield "MultiHeadAttention", (["q", "k", "v", "b"], {"b": normal(rng, 192)}, {"num_heads": 4, "unidirectional": 1}), {}
        yield "MultiHeadAttention", (["q", "k", "v", "", "", "", "pk", "pv"], {}, {"num_heads": 4}), {
            "data": [(n, normal(rng, 2, 4, 5, 16)) for n in ("pk", "pv")], "results": three}
        yield "GroupQueryAttention", (["q", "k", "v", "", "", "n", "t"], lengths, heads), {"width": half, "results": three}
        yield "GroupQueryAttention", (["q", "k", "v", "", "", "n", "t", "cos", "sin"], {**lengths, **turned}, {
            **heads, "do_rotary": 1, "local_window_size": 2, "softcap": 3.0}), {"width": half, "results": three}
        yield "GroupQueryAttention", (["q", "", "", "", "", "n", "t"], lengths, heads), {"width": {"q": 128}, "results": three}
        yield "GroupQueryAttention", (["q", "k", "v", "pk", "pv", "n", "t", "cos", "sin"], {"t": np.array([5], np.int32), **turned}, {
            **heads, "do_rotary": 1}), {"width": half, "results": three, "data": [*past, ("n", np.array([4, 4], np.int32))], "steps": 1}
        yield "RotaryEmbedding", (["q", "ids", "cos", "sin"], {"ids": np.array([1], np.int64), **turned}, {"num_heads": 4}), {}
        yield "RotaryEmbedding", (["q", "ids", "cos", "sin"], {"ids": np.array([[0, 1, 2], [5, 4, 15]], np.int64), **turned}, {
            "num_heads": 4, "interleaved": 1}), {}

    def feeds(self, more):
        """Of each sample."""
        rng = np.random.default_rng(3)
        return [{"x": normal(rng, 2, more.get("steps", 3), 32), **{n: v if v.dtype == np.int32 else normal(rng, *v.shape) for n, v in more.get("data", ())}}
                for _ in range(SAMPLES)]

    def quantized(self, model, feeds, *options):
        path, data, made = (self.scratch / n for n in ("m.onnx", "d.npz", "q.onnx"))
        onnx.save(model, path)
        np.savez(data, **{n: np.stack([f[n] for f in feeds]) for n in feeds[0]})
        given = [] if {"-dynamic", "-weight-only"} & {*options} else [f"-calib={data}"]
        qxc(path, *given, "-no-sync", "-quiet", *options, "-o", made)
        return onnx.load(made)

    def counts(self, model):
        return collections.Counter(n.op_type for n in model.graph.node)

    def outputs(self, model, feed):
        names = [o.name for o in model.graph.output]
        return dict(zip(names, session(model).run(names, feed)))

    WAYS = (["-emit=qdq"], ["-emit=qop"], ["-dynamic", "-emit=qdq"], ["-weight-only", "-emit=qdq"])

    def test_stays(self):
        """Products around it are integers, the operator is as it was, and what it is made of is gone."""
        for (op, args, more), way in itertools.product(self.cases(), self.WAYS):
            with self.subTest(op=op, inputs=args[0], way=way, **args[2]):
                model, feeds = self.model(op, *args, **more), self.feeds(more)
                made = self.quantized(model, feeds, *way)
                was, is_ = ([n for n in m.graph.node if n.op_type == op] for m in (model, made))
                self.assertEqual(*([(n.domain, n.name, len(n.output), sorted(map(str, n.attribute))) for n in nodes] for nodes in (was, is_)))
                self.assertFalse({"Softmax", "Transpose", "Slice", "Where", "Gather"} & {*self.counts(made)})
                self.assertTrue([n for n in made.graph.node if "Quantize" in n.op_type or "Dequantize" in n.op_type])
                for feed in feeds:
                    want, got = self.outputs(model, feed), self.outputs(made, feed)
                    self.assertEqual(set(want), set(got))
                    self.assertGreater(sqnr(want["y"], got["y"]), LEAST)

    def test_same_bits(self):
        """Where only what comes behind is quantized."""
        for op, args, more in self.cases():
            with self.subTest(op=op, inputs=args[0], **args[2]):
                model, feeds = self.model(op, *args, **more), self.feeds(more)
                made = self.quantized(model, feeds, "-emit=qdq", "-only=last")
                self.assertEqual(self.counts(made)[op], 1)
                self.assertEqual(self.counts(made)["QuantizeLinear"], 1)
                for m in (model, made):
                    m.graph.output.add().CopyFrom(helper.make_tensor_value_info("a", TensorProto.FLOAT, None))
                for feed in feeds:
                    want, got = self.outputs(model, feed), self.outputs(made, feed)
                    for name in set(want) - {"y"}:
                        np.testing.assert_array_equal(got[name], want[name], name)

    def test_read_back(self):
        """What is quantized around it already stays as it is, and comes back as the float model."""
        for op, args, more in self.cases():
            with self.subTest(op=op, inputs=args[0], **args[2]):
                model, feeds = self.model(op, *args, **more), self.feeds(more)
                made = self.quantized(model, feeds, "-emit=qdq")
                path, again, back = (self.scratch / n for n in ("q.onnx", "again.onnx", "float.onnx"))
                qxc(path, "-emit=qdq", "-no-sync", "-quiet", "-o", again)
                self.assertEqual(self.counts(onnx.load(again)), self.counts(made))
                qxc(path, "-emit=float", "-no-sync", "-quiet", "-o", back)
                self.assertEqual(self.counts(onnx.load(back)), self.counts(model))
                for feed in feeds[:1]:
                    want, got = self.outputs(made, feed), self.outputs(onnx.load(again), feed)
                    for name, values in want.items():
                        np.testing.assert_array_equal(got[name], values, name)

    def test_taken_apart(self):
        """Where integers within are asked for, they are there."""
        for op, args, more in self.cases():
            if op == "RotaryEmbedding" or "n" in [n for n, _ in more.get("data", ())]:
                continue
            for way in (["-placement=all"], ["-placement=products"], ["-only=MatMul"]):
                with self.subTest(op=op, inputs=args[0], way=way, **args[2]):
                    model, feeds = self.model(op, *args, **more), self.feeds(more)
                    made = self.quantized(model, feeds, "-emit=qdq", *way)
                    counts = self.counts(made)
                    self.assertEqual((counts[op], counts["Softmax"]), (0, 1))
                    self.assertEqual(counts["CallBegin"] + counts["CallEnd"], 0)
                    by = {result: n.op_type for n in made.graph.node for result in n.output}
                    within = [n for n in made.graph.node if n.op_type == "MatMul" and n.name not in ("to q", "to k", "to v", "last")]
                    self.assertEqual(2, len(within))
                    for n in within:
                        self.assertEqual(["DequantizeLinear"] * 2, [by[v] for v in n.input])
                    for feed in feeds[:1]:
                        self.assertGreater(sqnr(self.outputs(model, feed)["y"], self.outputs(made, feed)["y"]), LEAST)

    def test_half(self):
        """A model of float16 computes in float, the operator with it."""
        op, args, more = next(x for x in self.cases() if x[0] == "GroupQueryAttention")
        model, feeds = self.model(op, *args, **more), self.feeds(more)
        want = [self.outputs(model, feed)["y"] for feed in feeds]
        for t in model.graph.initializer:
            if t.data_type == TensorProto.FLOAT:
                t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name))
        for v in (*model.graph.input, *model.graph.output):
            if v.type.tensor_type.elem_type == TensorProto.FLOAT:
                v.type.tensor_type.elem_type = TensorProto.FLOAT16
        halves = [{n: v.astype(np.float16) if v.dtype == np.float32 else v for n, v in f.items()} for f in feeds]
        made = self.quantized(model, halves, "-emit=qdq")
        self.assertEqual(self.counts(made)[op], 1)
        for feed, y in zip(feeds, want):
            self.assertGreater(sqnr(y, self.outputs(made, feed)["y"]), LEAST)
